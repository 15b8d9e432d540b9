#include "tests/servers/nfs_gateway.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace::testing {
namespace {

constexpr auto kServeMax = std::chrono::minutes(2);

// Of the front end "nfs" in the status; 0 when there is none, or no status yet.
std::uint16_t served_port(const std::string& status) {
  const auto document = nlohmann::json::parse(status, nullptr, false);
  if (!document.is_object()) return 0;
  for (const auto& front_end : document.value("front_ends", nlohmann::json::array())) {
    const auto address = front_end.find("address");
    if (front_end.value("name", "") != "nfs" || address == front_end.end()) continue;
    if (!address->is_string()) continue;
    const auto text = address->get<std::string>();
    return static_cast<std::uint16_t>(std::stoi(text.substr(text.rfind(':') + 1)));
  }
  return 0;
}

}  // namespace

NfsGateway::NfsGateway(std::string program, std::string directory,
                       std::vector<std::string> settings)
    : program_(std::move(program)),
      directory_(std::move(directory)),
      settings_(std::move(settings)) {
  std::filesystem::create_directories(directory_);
}

NfsGateway::~NfsGateway() { kill(); }

ChildOptions NfsGateway::child_options(const std::string& output) const {
  return {
      .output_file = output,
      .environment = {
          {"HOME", directory_}, {"XDG_CONFIG_HOME", directory_}, {"XDG_DATA_HOME", directory_}}};
}

void NfsGateway::start() {
  std::vector<std::string> command = {program_, "serve", "--nfs",
                                      fmt::format("127.0.0.1:{}", port_)};
  command.insert(command.end(), settings_.begin(), settings_.end());
  process_ = std::make_unique<ChildProcess>(command, child_options(directory_ + "/serve.log"));
  const auto deadline = std::chrono::steady_clock::now() + kServeMax;
  while (process_->running() && std::chrono::steady_clock::now() < deadline) {
    const auto [status, output] = run_command({program_, "status", "--json"}, child_options(""));
    if (status == 0 && served_port(output) != 0) {
      port_ = served_port(output);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw std::runtime_error("the gateway does not start: " + log());
}

void NfsGateway::kill() {
  if (!process_) return;
  process_->signal(SIGKILL);
  process_->wait(kServeMax);
  process_.reset();
}

void NfsGateway::stop() {
  process_->signal(SIGTERM);
  const auto status = process_->wait(kServeMax);
  if (status != 0) throw std::runtime_error("the gateway does not end well: " + log());
  process_.reset();
}

std::string NfsGateway::millrace(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {program_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto [status, output] = run_command(command, child_options(""), kServeMax);
  if (status != 0) throw std::runtime_error(arguments.front() + ": " + output);
  return std::move(output);
}

double NfsGateway::metric(const std::string& name, const std::vector<std::string>& labels) {
  const std::string socket = directory_ + "/millrace/millrace.sock";
  std::istringstream lines(
      run_command({"curl", "-sS", "--unix-socket", socket, "http://d/metrics"}).output);
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find_first_of("{ ");
    if (line.substr(0, end) != name) continue;
    if (std::ranges::all_of(labels, [&](const std::string& label) {
          return line.find(label) != std::string::npos;
        })) {
      sum += std::stod(line.substr(line.rfind(' ') + 1));
    }
  }
  return sum;
}

std::string NfsGateway::log() const {
  std::ostringstream text;
  text << std::ifstream(directory_ + "/serve.log").rdbuf();
  return text.str();
}

}  // namespace millrace::testing
