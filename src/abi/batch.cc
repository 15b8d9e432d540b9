// Batches of include/millrace.h.

#include "abi/handles.h"

namespace {

// C has no empty array to point to.
template <class T>
const T* pointer_of(std::span<const T> values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

extern "C" {

void mr_batch_retain(mr_batch* batch) { batch->references.fetch_add(1); }

void mr_batch_release(mr_batch* batch) {
  if (batch != nullptr && batch->references.fetch_sub(1) == 1) delete batch;
}

size_t mr_batch_samples(const mr_batch* batch) { return batch->batch.view->samples(); }
uint64_t mr_batch_epoch(const mr_batch* batch) { return batch->batch.view->head().epoch; }
const uint64_t* mr_batch_positions(const mr_batch* batch) {
  return batch->batch.view->positions().data();
}
const uint64_t* mr_batch_sources(const mr_batch* batch) {
  return batch->batch.view->sources().data();
}
const uint64_t* mr_batch_sample_ids(const mr_batch* batch) {
  return batch->batch.view->sample_ids().data();
}
const uint64_t* mr_batch_seeds(const mr_batch* batch) { return batch->batch.view->seeds().data(); }

size_t mr_batch_columns(const mr_batch* batch) { return batch->batch.view->columns().size(); }

void mr_batch_column(const mr_batch* batch, size_t index, mr_column* column) {
  const millrace::BatchColumn& from = batch->batch.view->columns()[index];
  *column = {.name = from.name.data(),
             .type = from.type.data(),
             .data = from.data.data(),
             .data_bytes = from.data.size(),
             .offsets = from.offsets.data(),
             .item_offsets = pointer_of(from.item_offsets),
             .present = pointer_of(from.present),
             .uniform = from.uniform ? 1 : 0,
             .dimensions = static_cast<std::uint32_t>(from.dimensions),
             .shape = pointer_of(from.shape),
             .shapes = pointer_of(from.shapes)};
}

void mr_batch_memory(const mr_batch* batch, const void** data, size_t* bytes) {
  *data = batch->batch.view->bytes().data();
  *bytes = batch->batch.view->bytes().size();
}

}  // extern "C"
