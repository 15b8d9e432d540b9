#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "app/diagnosis.h"
#include "app/machine_diagnosis.h"
#include "app/store_diagnosis.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

std::string_view mark(Diagnosis::Level level, bool colored) {
  switch (level) {
    case Diagnosis::Level::kOk:
      return colored ? "\x1b[32m ok \x1b[0m" : " ok ";
    case Diagnosis::Level::kWarn:
      return colored ? "\x1b[33mwarn\x1b[0m" : "warn";
    case Diagnosis::Level::kFail:
      return colored ? "\x1b[31mfail\x1b[0m" : "fail";
  }
  return "";
}

Status print_text(Output& output, const std::vector<Diagnosis>& findings) {
  for (const Diagnosis& finding : findings) {
    std::string text = fmt::format("{}  {:<19} {}\n", mark(finding.level, output.terminal()),
                                   finding.check, printable(finding.sentence));
    if (!finding.advice.empty()) {
      text += fmt::format("      {:<19} -> {}\n", "", printable(finding.advice));
    }
    MR_RETURN_IF_ERROR(output.write(as_bytes(text)));
  }
  return {};
}

Status print_json(Output& output, const std::vector<Diagnosis>& findings, bool healthy) {
  Json rows = Json::array();
  for (const Diagnosis& finding : findings) {
    rows.push_back({{"check", finding.check},
                    {"level", diagnosis_level_name(finding.level)},
                    {"message", finding.sentence},
                    {"advice", finding.advice}});
  }
  return output.document({{"healthy", healthy}, {"findings", rows}});
}

Result<int> examine(Session& session) {
  std::vector<Diagnosis> findings = machine_diagnosis(session.settings());
  if (session.settings().store.scheme == StoreUrl::Scheme::kS3) {
    MR_ASSIGN_OR_RETURN(Application* const application, session.application());
    findings.push_back(credentials_diagnosis(
        application->describe_credentials(session.request(), session.settings().store)));
  }
  auto store = session.store(session.settings().store);
  const std::string url = Location{session.settings().store, ""}.to_string();
  const std::vector<Diagnosis> of_store =
      store ? store_diagnosis(session.request(), **store, url, session.clock())
            : std::vector<Diagnosis>{unreachable_store(store.error(), url)};
  findings.insert(findings.end(), of_store.begin(), of_store.end());
  MR_RETURN_IF_ERROR(session.context().check(session.clock()));

  const bool healthy = std::ranges::none_of(
      findings, [](const Diagnosis& f) { return f.level == Diagnosis::Level::kFail; });
  Output& output = session.output();
  MR_RETURN_IF_ERROR(output.json() ? print_json(output, findings, healthy)
                                   : print_text(output, findings));
  return healthy ? kExitOk : kExitFailure;
}

}  // namespace

void register_doctor(CommandLine& line, CLI::App& root) {
  CLI::App* const command = root.add_subcommand(
      "doctor", "Examine this machine and the store, and say what to do about each finding");
  line.runs(command, examine);
}

}  // namespace millrace::cli
