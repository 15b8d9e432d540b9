#include "metrics/metric_page.h"

#include <iterator>

#include <fmt/format.h>

#include "metrics/metric_table.h"

namespace millrace {

std::string render_metric_page() {
  std::string page =
      "# Metrics\n\n"
      "<!-- Rendered from src/metrics/metric_table.cc. After a change there:\n"
      "     MILLRACE_UPDATE_DOCS=1 ctest -R metrics_tests -->\n\n"
      "In Prometheus' text format. The values of every label are fixed, so the number of series is "
      "bounded. Beside them a gateway counts by version (`millrace_version_read_bytes_total`, "
      "`_reads_total`, `_fetches_total`, `_fetched_bytes_total`, `_handed_out_files_total`) and by "
      "bucket "
      "(`millrace_bucket_read_bytes_total` and so on): of the first 100, those that were read most "
      "before the others, and of all others together. These show what is on the disk, where a "
      "gateway saves them every 5 s: so that no series ever sinks, over a kill and restarts too. A "
      "disk that takes no saves makes them stand still. Principals and runs are no labels: each "
      "run would leave series of its own behind for ever. `millrace usage --json` (`GET "
      "/v1/usage`) has bytes, requests and egress by version, principal and run, and a run's "
      "record has its own (`millrace run show`).\n\n"
      "| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n";
  for (const MetricSpec& spec : metric_table()) {
    std::string labels;
    for (const MetricLabel& label : spec.labels) {
      fmt::format_to(std::back_inserter(labels), "{}`{}`", labels.empty() ? "" : ", ", label.name);
    }
    fmt::format_to(std::back_inserter(page), "| `{}` | {} | {} | {} | {} |\n", spec.name,
                   metric_type_name(spec.type), metric_unit_name(spec.unit), labels, spec.help);
  }
  page += "\n## Label values\n\n";
  for (const MetricSpec& spec : metric_table()) {
    for (const MetricLabel& label : spec.labels) {
      const std::string head = fmt::format("- `{}`", label.name);
      const std::string values = fmt::format(": {}\n", fmt::join(label.values, ", "));
      if (page.find(head + values) != std::string::npos) continue;
      const bool is_first = page.find(head + ":") == std::string::npos;
      page += head + (is_first ? "" : fmt::format(" of `{}`", spec.name)) + values;
    }
  }
  page += "\n## Histogram buckets\n\n";
  for (const MetricUnit unit : {MetricUnit::kSeconds, MetricUnit::kBytes}) {
    fmt::format_to(std::back_inserter(page), "- {}: {:g}\n", metric_unit_name(unit),
                   fmt::join(metric_buckets(unit), ", "));
  }
  return page;
}

}  // namespace millrace
