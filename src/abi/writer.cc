// Writers of include/millrace.h.

#include <unistd.h>

#include <utility>
#include <vector>

#include "abi/handles.h"
#include "abi/version_writer.h"
#include "app/json.h"
#include "base/hex.h"

struct mr_writer {
  pid_t process;
  std::unique_ptr<millrace::VersionWriter> writer;
};

extern "C" {

int mr_writer_open(const char* options, mr_writer** writer, mr_error** error) {
  auto parsed = millrace::VersionWriter::parse(options);
  if (!parsed) return millrace::tell(parsed.error(), error);
  auto opened = millrace::VersionWriter::open(*std::move(parsed));
  if (!opened) return millrace::tell(opened.error(), error);
  *writer = new mr_writer{.process = ::getpid(), .writer = *std::move(opened)};
  return MR_OK;
}

int mr_writer_write(mr_writer* writer, const char* key, const mr_field* fields, size_t count,
                    mr_error** error) {
  std::vector<millrace::VersionWriter::Field> all;
  for (const mr_field& field : std::span(fields, count)) {
    all.push_back({.name = field.name == nullptr ? "" : field.name,
                   .data = {static_cast<const std::byte*>(field.data), field.bytes}});
  }
  return millrace::tell(writer->writer->write(key, all), error);
}

int mr_writer_commit(mr_writer* writer, char** json, mr_error** error) {
  const auto report = writer->writer->commit(millrace::RequestContext::background());
  if (!report) return millrace::tell(report.error(), error);
  const millrace::Json document = {
      {"version", report->entry->ref.text()},
      {"digest", millrace::to_hex(report->entry->facts->content_digest)},
      {"files", report->files},
      {"bytes", report->bytes}};
  return millrace::give_text(document.dump(), json, error);
}

int mr_writer_abort(mr_writer* writer, mr_error** error) {
  return millrace::tell(writer->writer->abort(), error);
}

void mr_writer_close(mr_writer* writer) {
  if (writer == nullptr) return;
  // The lock of its directory is the parent's.
  if (writer->process != ::getpid()) (void)writer->writer.release();
  delete writer;
}

}  // extern "C"
