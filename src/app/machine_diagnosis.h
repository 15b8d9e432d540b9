#pragma once

#include <vector>

#include "app/diagnosis.h"
#include "app/settings.h"

namespace millrace {

// What can be said about this machine without asking the store: kernel, FUSE, limits, memory,
// disks. Changes nothing on the machine.
std::vector<Diagnosis> machine_diagnosis(const Settings& settings);

}  // namespace millrace
