#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "daemon/control_request.h"

namespace millrace {

class ControlRoutes;
class Gateway;

// A way to the gateway's files, as FUSE or NFS: started and stopped with the daemon.
//
// add_routes, start and stop are called once each, in that order, on the daemon's main thread; the
// others from any thread, between start and stop.
class FrontEnd {
 public:
  virtual ~FrontEnd() = default;

  // "fuse": as in the status and in logs.
  virtual std::string_view name() const = 0;
  // What can be asked of it. Nobody asks before start() has returned.
  virtual void add_routes(ControlRoutes& routes) = 0;
  // Serves from now on. The gateway outlives it. A failure ends the daemon's start.
  virtual Status start(Gateway& gateway) = 0;
  // Takes no more requests, and lets those under way end until the deadline. Also called when
  // start() failed, or was not called because another front end failed.
  virtual void stop(TimePoint deadline) = 0;
  // For how long clients on this machine may go on with what they were told of the registry.
  virtual Duration believed_for() { return Duration::zero(); }
  // What it serves, for people and dashboards: an object.
  virtual Json status() = 0;
};

}  // namespace millrace
