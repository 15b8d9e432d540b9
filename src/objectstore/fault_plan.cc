#include "objectstore/fault_plan.h"

#include <memory>
#include <utility>

#include "base/random.h"

namespace millrace {

FaultPlan no_faults() {
  return [](const FaultableCall&) { return std::optional<Fault>(); };
}

FaultPlan fault_nth_call(std::uint64_t number, Fault fault) {
  return [number, fault](const FaultableCall& call) {
    return call.number == number ? std::optional<Fault>(fault) : std::nullopt;
  };
}

FaultPlan random_faults(std::uint64_t seed, std::vector<FaultChance> chances) {
  return [random = std::make_shared<SeededRandom>(seed),
          chances = std::move(chances)](const FaultableCall&) -> std::optional<Fault> {
    double drawn = random->uniform();
    for (const FaultChance& chance : chances) {
      if (drawn >= chance.probability) {
        drawn -= chance.probability;
        continue;
      }
      Fault fault = chance.fault;
      fault.delay = Duration(
          static_cast<Duration::rep>(static_cast<double>(fault.delay.count()) * random->uniform()));
      return fault;
    }
    return std::nullopt;
  };
}

}  // namespace millrace
