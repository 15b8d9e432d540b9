#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/manifest_spool.h"
#include "platform/digest.h"
#include "platform/file.h"

namespace millrace {

// A manifest being written: pages one after the other behind a header page that comes last. Until
// commit() the file has another name, and goes when this object goes. Needs one thread at a time.
class ManifestPageFile {
 public:
  static Result<std::unique_ptr<ManifestPageFile>> create(std::string path);
  ~ManifestPageFile();
  ManifestPageFile(const ManifestPageFile&) = delete;
  ManifestPageFile& operator=(const ManifestPageFile&) = delete;

  Status append(ByteView bytes);
  Status append(const ManifestSpool& spool);
  // Fills the page up with zeros.
  Status end_section();

  // CRC-32C of each page so far, with 0 for the header.
  const std::vector<std::uint32_t>& checksums() const { return checksums_; }

  // Writes the header, makes everything durable and gives the file its name. An older file of that
  // name is replaced. Returns the SHA-256 of the whole file.
  Result<Sha256Digest> commit(ByteView header_page);

 private:
  ManifestPageFile(std::string path, std::string temporary, File file);
  Status write_pages();
  Result<Sha256Digest> digest() const;

  std::string path_;
  std::string temporary_;
  File file_;
  std::vector<std::byte> buffer_;
  std::vector<std::uint32_t> checksums_{0};
  bool committed_ = false;
};

}  // namespace millrace
