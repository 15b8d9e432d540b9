#include "dataset/pack_stream.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/mutex.h"
#include "dataset/tar_format.h"

namespace millrace {
namespace {

std::uint64_t member_end(const PlannedMember& member) {
  return member.content_offset + tar_padded(member.file.size);
}

// The bytes [begin, end) of the pack, as far as they fall into the window that starts at `window`.
struct Overlap {
  std::uint64_t skipped = 0;  // Of [begin, end), before the window.
  MutableByteView bytes = {};
};
Overlap overlap(std::uint64_t begin, std::uint64_t end, std::uint64_t window,
                MutableByteView into) {
  const std::uint64_t from = std::clamp(begin, window, window + into.size());
  const std::uint64_t to = std::clamp(end, from, std::max(from, window + into.size()));
  return {.skipped = from - begin, .bytes = into.subspan(from - window, to - from)};
}

void fill_zeros(const Overlap& place) { std::ranges::fill(place.bytes, std::byte{0}); }

}  // namespace

// Shared with tasks that may come to run after all is done, and then find nothing to do.
struct PackStream::Reading {
  const RequestContext* context = nullptr;
  SourceTree* source = nullptr;
  std::vector<Part>* parts = nullptr;
  const std::size_t count = 0;
  std::atomic<std::size_t> next = 0;

  Mutex mutex;
  CondVar all_read;
  std::size_t read MR_GUARDED_BY(mutex) = 0;
};

PackStream::PackStream(SourceTree& source, const PlannedPack& pack, Executor* readers,
                       std::size_t reads_max)
    : source_(source), pack_(pack), readers_(readers), reads_max_(reads_max) {
  hashes_.reserve(pack.members.size());
}

Status PackStream::fill(const RequestContext& context, MutableByteView into) {
  assert(offset_ + into.size() <= pack_.bytes);
  MR_ASSIGN_OR_RETURN(std::vector<Part> parts, lay_out(into));
  read_parts(context, parts);
  for (Part& part : parts) {
    MR_RETURN_IF_ERROR(part.status);
    if (part.is_whole_file()) {
      hashes_.push_back(part.hash);
      continue;
    }
    hash_.add(part.into);
    if (part.ends_file()) {
      hashes_.push_back(hash_.finish());
    } else {
      carried_ = std::move(part.open_file);
    }
  }
  offset_ += into.size();
  return {};
}

Result<std::vector<PackStream::Part>> PackStream::lay_out(MutableByteView into) {
  const std::uint64_t end = offset_ + into.size();
  std::vector<Part> parts;
  for (; member_ < pack_.members.size(); ++member_) {
    MR_RETURN_IF_ERROR(lay_out_member(member_, into, parts));
    if (member_end(pack_.members[member_]) > end) return parts;
  }
  const std::uint64_t members_end = pack_.members.empty() ? 0 : member_end(pack_.members.back());
  fill_zeros(overlap(members_end, pack_.bytes, offset_, into));
  return parts;
}

Status PackStream::lay_out_member(std::size_t member, MutableByteView into,
                                  std::vector<Part>& parts) {
  const PlannedMember& planned = pack_.members[member];
  const SourceEntry& file = planned.file;
  const std::uint64_t begin = member == 0 ? 0 : member_end(pack_.members[member - 1]);
  const std::uint64_t end = offset_ + into.size();
  if (offset_ < planned.content_offset && begin < end) {
    MR_ASSIGN_OR_RETURN(const std::string header,
                        encode_tar_header(pack_tar_member(file), kPackTimes));
    if (begin + header.size() != planned.content_offset) {
      return Status(StatusCode::kInternal,
                    fmt::format("the plan of a pack has no room for '{}'", file.path));
    }
    const Overlap place = overlap(begin, planned.content_offset, offset_, into);
    std::memcpy(place.bytes.data(), header.data() + place.skipped, place.bytes.size());
  }
  fill_zeros(overlap(planned.content_offset + file.size, member_end(planned), offset_, into));
  const Overlap content =
      overlap(planned.content_offset, planned.content_offset + file.size, offset_, into);
  // A file without bytes is looked at with the last byte of its header.
  const bool looks_at_empty =
      file.size == 0 && planned.content_offset > offset_ && planned.content_offset <= end;
  if (content.bytes.empty() && !looks_at_empty) return {};
  parts.push_back({.file = &file,
                   .offset = content.skipped,
                   .into = content.bytes,
                   .open_file = content.skipped > 0 ? std::move(carried_) : nullptr});
  return {};
}

void PackStream::read_parts(const RequestContext& context, std::vector<Part>& parts) {
  if (parts.empty()) return;
  const auto reading = std::make_shared<Reading>(&context, &source_, &parts, parts.size());
  const std::size_t tasks = readers_ == nullptr ? 1 : std::min(parts.size(), reads_max_);
  for (std::size_t n = 1; n < tasks; ++n) {
    // Refused when the readers are busy: then this thread does what they do not.
    if (!readers_->submit([reading] { work_on(*reading); }).ok()) break;
  }
  work_on(*reading);
  MutexLock lock(reading->mutex);
  while (reading->read < parts.size())
    reading->all_read.wait(reading->mutex);
}

void PackStream::work_on(Reading& reading) {
  for (;;) {
    const std::size_t at = reading.next.fetch_add(1);
    if (at >= reading.count) return;
    Part& part = (*reading.parts)[at];
    part.status = read_part(*reading.context, *reading.source, part);
    MutexLock lock(reading.mutex);
    if (++reading.read == reading.count) reading.all_read.notify_all();
  }
}

Status PackStream::read_part(const RequestContext& context, SourceTree& source, Part& part) {
  const std::string& path = part.file->path;
  if (part.offset == 0) {
    MR_ASSIGN_OR_RETURN(part.open_file, source.open(context, *part.file));
  }
  if (!part.into.empty()) {
    MR_ASSIGN_OR_RETURN(const std::size_t filled,
                        part.open_file->read_at(context, part.offset, part.into));
    if (filled < part.into.size()) return source_changed(path, "it became shorter");
  }
  // By whoever has read it: the bytes are still in that core's cache, and the cores share the work.
  if (part.is_whole_file()) part.hash = sha256(part.into);
  if (!part.ends_file()) return {};
  MR_ASSIGN_OR_RETURN(const bool unchanged, part.open_file->unchanged(context));
  part.open_file.reset();
  return unchanged ? Status() : source_changed(path, "it was written to while it was read");
}

}  // namespace millrace
