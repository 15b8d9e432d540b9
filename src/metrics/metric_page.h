#pragma once

#include <string>

namespace millrace {

// docs/metrics.md, from the table. A test compares the file with this; it writes the file when
// MILLRACE_UPDATE_DOCS is set.
std::string render_metric_page();

}  // namespace millrace
