#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/buffer.h"
#include "base/random.h"
#include "base/request_context.h"
#include "base/status.h"

namespace millrace::cli {

// Takes the next bytes of a stream.
using ByteSink = std::function<Status(Slice data)>;

// The next bytes of `fd`, 0 at its end. Gives kCancelled as soon as `interrupt_fd` is readable.
Result<std::size_t> read_some(int fd, MutableByteView into, int interrupt_fd,
                              const std::string& name);

// A local file that is read from start to end.
class LocalFileReader {
 public:
  // kNotFound, kPermissionDenied, kInvalidArgument (a directory) or kIoError.
  static Result<LocalFileReader> open(const std::string& path);
  // Standard input: of unknown size.
  static LocalFileReader standard_input();
  LocalFileReader(LocalFileReader&& other) noexcept;
  LocalFileReader& operator=(LocalFileReader&&) = delete;
  ~LocalFileReader();

  // Delivers everything in pieces of at most 8 MiB. kConflict when a regular file has another size
  // at the end than at the beginning: half of an old and half of a new file is no copy.
  Status read_all(int interrupt_fd, const ByteSink& sink);
  // 0 when it is not known.
  std::uint64_t size() const { return size_; }
  bool regular() const { return regular_; }

 private:
  LocalFileReader(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  int fd_ = -1;
  std::string name_;
  std::uint64_t size_ = 0;
  bool regular_ = false;
};

// A local file that appears whole or not at all: written under another name in the same directory,
// made durable, then renamed. What is not a regular file (a device, a pipe) is written directly.
class LocalFileWriter {
 public:
  // Makes missing directories above it.
  static Result<LocalFileWriter> create(const std::string& path, Random& random);
  LocalFileWriter(LocalFileWriter&& other) noexcept;
  LocalFileWriter& operator=(LocalFileWriter&&) = delete;
  // Removes the temporary file unless finish() succeeded.
  ~LocalFileWriter();

  Status write(const Slice& data);
  // Gives the file its name. With `keep_existing`: kPreconditionFailed when the name is taken.
  Status finish(bool keep_existing);

 private:
  LocalFileWriter(int fd, std::string path, std::string temporary)
      : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {}
  int fd_ = -1;
  std::string path_;
  std::string temporary_;  // Empty when the target is written directly.
};

}  // namespace millrace::cli
