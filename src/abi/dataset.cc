// Datasets of include/millrace.h.

#include <utility>

#include <fmt/format.h>

#include "abi/handles.h"
#include "app/json.h"
#include "base/hex.h"
#include "loader/batch_reader.h"

namespace millrace {
namespace {

constexpr Duration kReadTimeout = std::chrono::minutes(5);

Json info_document(const DatasetHandle& handle) {
  Json datasets = Json::array();
  const JobChoice& choice = handle.job()->choice();
  for (std::size_t n = 0; n < choice.sources.size(); ++n) {
    const SourceFacts& facts = handle.sources()[n];
    datasets.push_back({{"name", choice.sources[n].name},
                        {"version", facts.version},
                        {"digest", to_hex(facts.content_digest)},
                        {"reader", facts.reader},
                        {"split", choice.sources[n].split ? choice.sources[n].split->text() : ""},
                        {"samples", handle.job()->source_samples(n)},
                        {"bytes", facts.bytes},
                        {"classes", facts.classes}});
  }
  return {{"samples", handle.job()->samples()},
          {"engine", handle.kind()},
          {"order", order_mode_name(choice.order.mode)},
          {"seed", choice.order.seed},
          {"datasets", std::move(datasets)}};
}

Result<Batch> read_places(DatasetHandle& handle, std::uint64_t epoch,
                          std::span<const std::uint64_t> positions, double timeout,
                          const std::shared_ptr<Cancellation>& cancellation) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<BatchEngine> engine, handle.engine(cancellation));
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<const JobEpoch> order, handle.epoch(epoch));
  std::vector<PlacedSample> places;
  places.reserve(positions.size());
  for (const std::uint64_t position : positions) {
    if (position >= order->samples()) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("position {} is not below the {} samples of epoch {}", position,
                                 order->samples(), epoch));
    }
    places.push_back(place_of(*order, position));
  }
  const RequestContext context =
      handle.context(deadline_in(timeout, kReadTimeout)).with_cancellation(cancellation);
  MR_ASSIGN_OR_RETURN(ReadBatch read, read_batch(context, *engine, *order, std::move(places),
                                                 handle.options().faults, handle.row()));
  if (!read.losses.empty()) engine->report({.losses = std::move(read.losses)});
  return std::move(read.batch);
}

}  // namespace
}  // namespace millrace

extern "C" {

int mr_dataset_open(const char* options, mr_dataset** dataset, mr_error** error) {
  return mr_dataset_open_cancellable(options, nullptr, dataset, error);
}

int mr_dataset_open_cancellable(const char* options, const mr_cancellation* cancellation,
                                mr_dataset** dataset, mr_error** error) {
  auto parsed = millrace::parse_dataset_options(options);
  if (!parsed) return millrace::tell(parsed.error(), error);
  auto opened =
      millrace::DatasetHandle::open(*std::move(parsed), millrace::cancellation_of(cancellation));
  if (!opened) return millrace::tell(opened.error(), error);
  *dataset = new mr_dataset{*std::move(opened)};
  return MR_OK;
}

void mr_dataset_close(mr_dataset* dataset) { delete dataset; }

uint64_t mr_dataset_samples(const mr_dataset* dataset) { return dataset->handle->job()->samples(); }

int mr_dataset_info(const mr_dataset* dataset, char** json, mr_error** error) {
  const millrace::Json document = millrace::info_document(*dataset->handle);
  return millrace::give_text(
      document.dump(-1, ' ', false, millrace::Json::error_handler_t::replace), json, error);
}

int mr_dataset_read(mr_dataset* dataset, uint64_t epoch, const uint64_t* positions, size_t count,
                    double timeout, mr_batch** batch, mr_error** error) {
  return mr_dataset_read_cancellable(dataset, epoch, positions, count, timeout, nullptr, batch,
                                     error);
}

int mr_dataset_read_cancellable(mr_dataset* dataset, uint64_t epoch, const uint64_t* positions,
                                size_t count, double timeout, const mr_cancellation* cancellation,
                                mr_batch** batch, mr_error** error) {
  auto read = millrace::read_places(*dataset->handle, epoch, {positions, count}, timeout,
                                    millrace::cancellation_of(cancellation));
  if (!read) return millrace::tell(read.error(), error);
  *batch = millrace::give_batch(*std::move(read));
  return MR_OK;
}

}  // extern "C"
