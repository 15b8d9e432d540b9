#include "fuzz/fuzz_input.h"
#include "objectstore/s3/s3_xml.h"

// Every reader of S3's XML. A listing that is accepted must keep its promises: sorted, no empty
// keys.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const std::string_view xml = fuzz_text(data, size);
  if (const auto page = s3::parse_list(xml)) {
    std::string last;
    for (const ObjectInfo& object : page->objects) {
      fuzz_require(!object.key.value().empty() && last < object.key.value());
      last = object.key.value();
    }
  }
  (void)s3::parse_error(xml);
  if (const auto id = s3::parse_create_upload(xml)) fuzz_require(!id->empty());
  if (const auto etag = s3::parse_etag(xml)) fuzz_require(!etag->empty());
  (void)s3::parse_remove(xml);
  return 0;
}
