#pragma once

#include <string>
#include <vector>

#include "app/diagnosis.h"
#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"
#include "objectstore/object_store.h"

namespace millrace {

// Asks the store: whether it answers, how fast, whether its clock and ours agree, and what it can
// do. Writes a few small objects, and removes them. `name` is how the store is called in sentences.
std::vector<Diagnosis> store_diagnosis(const RequestContext& context, ObjectStore& store,
                                       const std::string& name, Clock& clock);

// Where the credentials come from, or why there are none.
Diagnosis credentials_diagnosis(const Result<std::string>& description);

// Why a store cannot be used, and what to do about it.
Diagnosis unreachable_store(const Status& status, const std::string& name);

}  // namespace millrace
