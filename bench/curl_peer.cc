#include "bench/curl_peer.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "base/units.h"
#include "bench/peer_process.h"

namespace millrace::bench {
namespace {

// curl takes one range per group of options, so each request is a group of its own.
void write_config(const std::string& file, const FetchPlan& plan, const CurlForm& form,
                  std::size_t process, bool tell_sizes) {
  std::ofstream out(file);
  const std::string signing = curl_signing_lines(plan.target);
  const char* between = "";
  for (std::size_t visit = process; visit < plan.visits; visit += form.processes) {
    const std::string& key = plan.objects.keys[visit % plan.objects.keys.size()];
    for (std::uint64_t at = 0; at < plan.objects.object_bytes; at += form.range_bytes) {
      out << between << "url = \"" << plan.target.url_of(key) << "\"\noutput = /dev/null\n"
          << "range = " << at << '-' << at + form.range_bytes - 1 << '\n'
          << "fail\nnoproxy = \"*\"\n"
          << signing;
      if (tell_sizes) out << "write-out = \"%{size_download}\\n\"\n";
      between = "next\n";
    }
  }
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

void check_sizes(const std::string& output, std::uint64_t expected) {
  std::uint64_t fetched = 0;
  std::istringstream lines(output);
  for (std::uint64_t size = 0; lines >> size;)
    fetched += size;
  if (fetched == expected) return;
  throw std::runtime_error(
      fmt::format("curl fetched {} bytes of {}: {}", fetched, expected, output.substr(0, 500)));
}

RunFigures run_curl(const FetchPlan& plan, const CurlForm& form, const std::string& scratch,
                    bool tell_sizes) {
  std::vector<std::vector<std::string>> commands;
  const std::size_t processes = std::min(form.processes, plan.visits);
  for (std::size_t process = 0; process < processes; ++process) {
    const std::string config = fmt::format("{}/curl-{}.config", scratch, process);
    write_config(config, plan, form, process, tell_sizes);
    commands.push_back({require_program("curl"), "--disable", "-sS", "--no-progress-meter", "-Z",
                        "--parallel-immediate", "--parallel-max",
                        fmt::format("{}", plan.in_flight / processes), "-K", config});
  }
  PeerRun run = run_peer(commands, scratch);
  if (tell_sizes) check_sizes(run.output, plan.bytes());
  run.figures.amount = static_cast<double>(plan.bytes());
  return run.figures;
}

}  // namespace

Contender curl_contender(const FetchPlan& plan, const CurlForm& form, const std::string& scratch) {
  return {.name = fmt::format("{} curl -Z, ranges of {}", form.processes,
                              format_size(form.range_bytes)),
          .run = [plan, form, scratch, checked = std::make_shared<bool>(false)] {
            const RunFigures figures = run_curl(plan, form, scratch, !*checked);
            *checked = true;
            return figures;
          }};
}

std::string curl_signing_lines(const BenchTarget& target) {
  if (!target.checks_signatures) return "";
  const std::string trust =
      target.ca_file.empty() ? "" : fmt::format("cacert = \"{}\"\n", target.ca_file);
  return trust + fmt::format(
                     "aws-sigv4 = \"aws:amz:us-east-1:s3\"\nuser = \"{}:{}\"\n"
                     "header = \"x-amz-content-sha256: UNSIGNED-PAYLOAD\"\n",
                     target.access_key, target.secret_key);
}

std::vector<std::string> curl_signing_arguments(const BenchTarget& target) {
  if (!target.checks_signatures) return {};
  return {"--aws-sigv4", "aws:amz:us-east-1:s3",
          "--user",      target.access_key + ":" + target.secret_key,
          "-H",          "x-amz-content-sha256: UNSIGNED-PAYLOAD"};
}

}  // namespace millrace::bench
