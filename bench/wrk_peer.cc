#include "bench/wrk_peer.h"

#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "base/clock.h"
#include "bench/peer_process.h"
#include "objectstore/s3/sigv4.h"

namespace millrace::bench {
namespace {

// "['name'] = 'value', ..." of the headers that sign a GET of `path`; empty for a server that does
// not look. Signed when the script is written: the clock is for what the server does.
std::string signed_headers(const BenchTarget& target, const std::string& path) {
  if (!target.checks_signatures) return "";
  s3::Credentials keys;
  keys.access_key = target.access_key;
  keys.secret_key = target.secret_key;
  s3::SigV4Signer signer("s3");
  std::vector<HttpHeader> headers;
  const std::string host = target.endpoint.substr(target.endpoint.find("://") + 3);
  signer.sign(keys, "us-east-1", system_clock().wall_now(),
              {HttpMethod::kGet, host, path, "", s3::kUnsignedPayload}, headers);
  std::string table;
  for (const HttpHeader& header : headers) {
    table += fmt::format("['{}'] = '{}', ", header.name, header.value);
  }
  return table;
}

// The requests are made before the clock runs; wrk's threads each go through all of them.
std::string write_script(const BenchTarget& target, const BenchObjects& objects,
                         const std::string& scratch) {
  std::string file = scratch + "/wrk.lua";
  std::ofstream out(file);
  out << "local gets = {\n";
  for (const std::string& key : objects.keys) {
    const std::string path = "/" + target.bucket + "/" + key;
    out << fmt::format("  {{'{}', {{{}}}}},\n", path, signed_headers(target, path));
  }
  out << "}\n"
      << "local requests, at = {}, 0\n"
      << "function init(args)\n"
      << "  for i, get in ipairs(gets) do requests[i] = wrk.format('GET', get[1], get[2]) end\n"
      << "end\n"
      << "function request()\n"
      << "  at = at % #requests + 1\n"
      << "  return requests[at]\n"
      << "end\n";
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
  return file;
}

// The number after `label` in wrk's report, or 0.
double number_after(const std::string& output, const std::string& label) {
  const std::size_t at = output.find(label);
  if (at == std::string::npos) return 0;
  double number = 0;
  std::istringstream(output.substr(at + label.size())) >> number;
  return number;
}

RunFigures run_wrk(const std::string& endpoint, const WrkForm& form, const std::string& script,
                   const std::string& scratch) {
  PeerRun run = run_peer(
      {{require_program("wrk"), "-t", fmt::format("{}", form.threads), "-c",
        fmt::format("{}", form.connections), "-d", fmt::format("{:.0f}s", std::ceil(form.seconds)),
        "--timeout", "30s", "-s", script, endpoint}},
      scratch);
  const double rate = number_after(run.output, "Requests/sec:");
  const bool refused = run.output.find("Non-2xx") != std::string::npos;
  const bool broken = run.output.find("Socket errors") != std::string::npos;
  if (refused || broken) throw std::runtime_error("wrk: " + run.output);
  if (rate <= 0) {
    throw std::runtime_error(fmt::format(
        "wrk got no answer in {:.0f} s: the machine is too busy, or --seconds is too short",
        std::ceil(form.seconds)));
  }
  // wrk's own time: starting it and its script is not part of the figure.
  run.figures.seconds = std::ceil(form.seconds);
  run.figures.amount = rate * run.figures.seconds;
  return run.figures;
}

}  // namespace

Contender wrk_contender(const BenchTarget& target, const BenchObjects& objects, const WrkForm& form,
                        const std::string& scratch) {
  return {.name = fmt::format("wrk -t{} -c{}", form.threads, form.connections),
          .run = [endpoint = target.endpoint, form, scratch,
                  script = write_script(target, objects, scratch)] {
            return run_wrk(endpoint, form, script, scratch);
          }};
}

}  // namespace millrace::bench
