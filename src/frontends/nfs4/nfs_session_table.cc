#include "frontends/nfs4/nfs_session_table.h"

#include <cstring>
#include <utility>

namespace millrace {

NfsSessionId NfsSessionTable::make_id(NfsClientId client, Random& random) {
  std::array<std::byte, 16> bytes;
  const std::uint64_t secret = random.next();
  std::memcpy(bytes.data(), &client.value(), 8);
  std::memcpy(bytes.data() + 8, &secret, 8);
  return NfsSessionId(bytes);
}

NfsSessionTable::Shard& NfsSessionTable::shard_of(const NfsSessionId& id) {
  return shards_[std::to_integer<std::size_t>(id.value().back()) % kShards];
}

const NfsSessionTable::Shard& NfsSessionTable::shard_of(const NfsSessionId& id) const {
  return shards_[std::to_integer<std::size_t>(id.value().back()) % kShards];
}

void NfsSessionTable::add(std::shared_ptr<NfsSession> session) {
  Shard& shard = shard_of(session->id());
  const NfsSessionId id = session->id();
  MutexLock lock(shard.mutex);
  shard.sessions.insert_or_assign(id, std::move(session));
}

std::shared_ptr<NfsSession> NfsSessionTable::remove(const NfsSessionId& id) {
  Shard& shard = shard_of(id);
  std::shared_ptr<NfsSession> session;
  {
    MutexLock lock(shard.mutex);
    const auto found = shard.sessions.find(id);
    if (found == shard.sessions.end()) return nullptr;
    session = std::move(found->second);
    shard.sessions.erase(found);
  }
  session->end();
  return session;
}

std::shared_ptr<NfsSession> NfsSessionTable::find(const NfsSessionId& id) const {
  const Shard& shard = shard_of(id);
  MutexLock lock(shard.mutex);
  const auto found = shard.sessions.find(id);
  return found == shard.sessions.end() ? nullptr : found->second;
}

std::size_t NfsSessionTable::size() const {
  std::size_t size = 0;
  for (const Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    size += shard.sessions.size();
  }
  return size;
}

void NfsSessionTable::connection_opened(NfsConnectionId connection) {
  MutexLock lock(bindings_mutex_);
  bindings_.try_emplace(connection);
}

NfsChannel NfsSessionTable::bind(NfsSession& session, NfsConnectionId connection,
                                 NfsChannelWish wish) {
  // Held over both, or the connection could be closed in between and stay bound.
  MutexLock lock(bindings_mutex_);
  if (wish != NfsChannelWish::kFore) {
    const auto open = bindings_.find(connection);
    if (open == bindings_.end()) return NfsChannel::kFore;
    std::vector<std::weak_ptr<NfsSession>>& bound = open->second;
    std::erase_if(bound, [&](const std::weak_ptr<NfsSession>& other) {
      const std::shared_ptr<NfsSession> alive = other.lock();
      return alive == nullptr || alive.get() == &session;
    });
    if (bound.size() >= kSessionsPerConnectionMax) return NfsChannel::kFore;
    bound.push_back(session.weak_from_this());
  }
  return session.bind(connection, wish);
}

void NfsSessionTable::connection_closed(NfsConnectionId connection) {
  MutexLock lock(bindings_mutex_);
  const auto found = bindings_.find(connection);
  if (found == bindings_.end()) return;
  for (const std::weak_ptr<NfsSession>& bound : found->second) {
    if (const std::shared_ptr<NfsSession> session = bound.lock()) session->unbind(connection);
  }
  bindings_.erase(found);
}

}  // namespace millrace
