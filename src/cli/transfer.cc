#include "cli/transfer.h"

#include <optional>

#include <fmt/format.h>

#include "base/random.h"
#include "cli/local_file.h"
#include "cli/object_writer.h"

namespace millrace::cli {
namespace {

struct Transfer {
  Session& session;
  const RequestContext& context;
  const TransferOptions& options;
  Progress& progress;

  PutOptions put_options() const {
    return {options.keep_existing ? WriteCondition::if_absent() : WriteCondition::none(), {}};
  }
  ByteSink counted(ByteSink sink) const {
    return [this, sink = std::move(sink)](Slice data) -> Status {
      const std::uint64_t size = data.size();
      MR_RETURN_IF_ERROR(sink(std::move(data)));
      progress.add_bytes(size);
      return Status();
    };
  }

  Result<std::uint64_t> upload(LocalFileReader source, const Location& target) const;
  Result<std::uint64_t> download(const Location& source, const Endpoint& target) const;
  Result<std::uint64_t> copy(const Location& source, const Location& target) const;
};

Status name_target(Status status, const Location& target) {
  if (status.code() != StatusCode::kPreconditionFailed) return status;
  return {StatusCode::kPreconditionFailed, fmt::format("{} exists already", target.to_string())};
}

Result<std::uint64_t> Transfer::upload(LocalFileReader source, const Location& target) const {
  MR_ASSIGN_OR_RETURN(const auto store, session.store(target.store, Session::Access::kWrite));
  progress.add_total(source.size());
  PutOptions put = put_options();
  put.size_hint = source.size();
  ObjectWriter writer(session, context, *store, target.object_key(), put);
  Status read = source.read_all(session.interrupt().fd(), counted([&](Slice data) -> Status {
                                  MR_RETURN_IF_ERROR(context.check(session.clock()));
                                  return writer.write(std::move(data));
                                }));
  MR_RETURN_IF_ERROR(read);
  auto info = writer.finish();
  if (!info) return failure(name_target(std::move(info).error(), target));
  return info->size;
}

Result<std::uint64_t> Transfer::download(const Location& source, const Endpoint& target) const {
  MR_ASSIGN_OR_RETURN(const auto store, session.store(source.store));
  MR_ASSIGN_OR_RETURN(const ObjectInfo info,
                      store->head(session.request(context), source.object_key()));
  progress.add_total(info.size);
  const ByteRange all{0, info.size};
  const auto* const local = std::get_if<LocalPath>(&target);
  if (local == nullptr) {
    MR_RETURN_IF_ERROR(read_object(
        session, context, *store, info, all,
        counted([&](Slice data) { return session.output().write(data.bytes()); }), options.limits));
    return info.size;
  }
  MR_ASSIGN_OR_RETURN(LocalFileWriter writer,
                      LocalFileWriter::create(local->path, system_random()));
  MR_RETURN_IF_ERROR(read_object(session, context, *store, info, all,
                                 counted([&](Slice data) { return writer.write(data); }),
                                 options.limits));
  MR_RETURN_IF_ERROR(writer.finish(options.keep_existing));
  return info.size;
}

Result<std::uint64_t> Transfer::copy(const Location& source, const Location& target) const {
  MR_ASSIGN_OR_RETURN(const auto from, session.store(source.store));
  MR_ASSIGN_OR_RETURN(const ObjectInfo info,
                      from->head(session.request(context), source.object_key()));
  progress.add_total(info.size);
  // A copy inside the store cannot be made conditional, so --no-clobber sends the bytes through
  // here.
  if (source.store == target.store && !options.keep_existing) {
    if (source.key == target.key) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("{} is both source and target", source.to_string()));
    }
    auto copied = from->copy(session.request(context), info, target.object_key());
    if (copied) {
      progress.add_bytes(info.size);
      return copied->size;
    }
    if (copied.error().code() != StatusCode::kUnsupported) {
      return failure(std::move(copied).error());
    }
  }
  MR_ASSIGN_OR_RETURN(const auto to, session.store(target.store, Session::Access::kWrite));
  PutOptions put = put_options();
  put.metadata = info.metadata;
  ObjectWriter writer(session, context, *to, target.object_key(), std::move(put));
  const ByteRange all{0, info.size};
  MR_RETURN_IF_ERROR(read_object(session, context, *from, info, all,
                                 counted([&](Slice data) { return writer.write(std::move(data)); }),
                                 options.limits));
  auto written = writer.finish();
  if (!written) return failure(name_target(std::move(written).error(), target));
  return written->size;
}

}  // namespace

Result<Endpoint> parse_endpoint(Session& session, const std::string& text) {
  if (text == "-") return StandardStream{};
  const bool in_store = text.starts_with("file:") || text.starts_with("s3:") ||
                        text.starts_with(kStorePrefix) || text.contains("://");
  if (in_store) {
    MR_ASSIGN_OR_RETURN(Location location, session.locate(text));
    return location;
  }
  if (text.empty()) {
    return failure(StatusCode::kInvalidArgument,
                   "'' is no place: expected a file, a URL, store:path, or - for a stream");
  }
  return LocalPath{text};
}

std::string describe(const Endpoint& endpoint) {
  if (const auto* const local = std::get_if<LocalPath>(&endpoint)) return local->path;
  if (const auto* const location = std::get_if<Location>(&endpoint)) return location->to_string();
  return "-";
}

Result<std::uint64_t> transfer(Session& session, const RequestContext& context,
                               const Endpoint& source, const Endpoint& target,
                               const TransferOptions& options, Progress& progress) {
  const Transfer work{session, context, options, progress};
  const auto* const from = std::get_if<Location>(&source);
  const auto* const to = std::get_if<Location>(&target);
  if (from != nullptr && to != nullptr) return work.copy(*from, *to);
  if (from != nullptr) return work.download(*from, target);
  if (to == nullptr) {
    return failure(
        StatusCode::kInvalidArgument,
        fmt::format("neither '{}' nor '{}' is in a store: write a URL, or store:{} for a "
                    "path inside --store",
                    describe(source), describe(target), describe(target)));
  }
  if (const auto* const local = std::get_if<LocalPath>(&source)) {
    MR_ASSIGN_OR_RETURN(LocalFileReader reader, LocalFileReader::open(local->path));
    return work.upload(std::move(reader), *to);
  }
  return work.upload(LocalFileReader::standard_input(), *to);
}

}  // namespace millrace::cli
