#include "loader/mds_sample.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/little_endian.h"
#include "base/utf8.h"

namespace millrace {

namespace {

constexpr std::size_t kMdsDimensionsMax = 63;
constexpr std::size_t kPixelModeBytesMax = 16;

struct NumberType {
  std::string_view name;
  std::uint8_t code;  // In arrays that say their type themselves.
  std::uint8_t bytes;
};

constexpr std::array<NumberType, 11> kNumberTypes = {{
    {"uint8", 8, 1},
    {"int8", 9, 1},
    {"uint16", 16, 2},
    {"int16", 17, 2},
    {"float16", 18, 2},
    {"uint32", 32, 4},
    {"int32", 33, 4},
    {"float32", 34, 4},
    {"uint64", 64, 8},
    {"int64", 65, 8},
    {"float64", 66, 8},
}};

const NumberType* number_type(std::string_view name) {
  const auto* const at = std::ranges::find(kNumberTypes, name, &NumberType::name);
  return at == kNumberTypes.end() ? nullptr : at;
}

// Takes numbers and bytes from the front of a value.
class MdsValueReader {
 public:
  explicit MdsValueReader(const Slice& bytes) : rest_(bytes) {}

  template <class Number>
  std::optional<Number> number() {
    if (rest_.size() < sizeof(Number)) return std::nullopt;
    const auto value = load_little_endian<Number>(rest_.data());
    rest_ = rest_.part(sizeof(Number));
    return value;
  }
  std::optional<Slice> bytes(std::uint64_t length) {
    if (length > rest_.size()) return std::nullopt;
    Slice taken = rest_.part(0, length);
    rest_ = rest_.part(length);
    return taken;
  }
  const Slice& rest() const { return rest_; }

 private:
  Slice rest_;
};

// Why a value is no good; empty when it is.
using Complaint = std::string_view;

Complaint decode_text(const Slice& bytes, SampleValue& value) {
  if (!is_utf8(bytes.text())) return "it is no UTF-8";
  value.bytes = bytes;
  return {};
}

Complaint decode_digits(const Slice& bytes, SampleValue& value) {
  constexpr std::string_view kDigits = "0123456789+-.eEinfatyNI_";
  if (bytes.empty() || bytes.text().find_first_not_of(kDigits) != std::string_view::npos) {
    return "it is no number in digits";
  }
  value.bytes = bytes;
  return {};
}

Complaint decode_pixels(const Slice& bytes, SampleValue& value) {
  MdsValueReader reader(bytes);
  const auto width = reader.number<std::uint32_t>();
  const auto height = reader.number<std::uint32_t>();
  const auto mode_bytes = reader.number<std::uint32_t>();
  if (!width || !height || !mode_bytes || *mode_bytes > kPixelModeBytesMax)
    return "its head is cut";
  const auto mode = reader.bytes(*mode_bytes);
  if (!mode || !is_utf8(mode->text())) return "it has no mode";
  value.type = fmt::format("pil:{}", mode->text());
  value.shape = {*height, *width};
  value.bytes = reader.rest();
  return {};
}

Complaint decode_items(MdsValueReader reader, SampleValue& value) {
  const auto count = reader.number<std::uint32_t>();
  // Each takes four bytes at least, so a wrong number costs no memory.
  if (!count || *count > reader.rest().size() / 4) return "its list is cut";
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t n = 0; n < *count; ++n)
    sizes.push_back(*reader.number<std::uint32_t>());
  value.type = "list";
  for (const std::uint32_t size : sizes) {
    auto item = reader.bytes(size);
    if (!item) return "its list is cut";
    value.items.push_back(*std::move(item));
  }
  return reader.rest().empty() ? Complaint() : "its list is longer than it says";
}

Complaint decode_list(const Slice& bytes, SampleValue& value) {
  MdsValueReader reader(bytes);
  // A place that writers leave for later.
  if (reader.number<std::uint32_t>() != std::uint32_t{0}) return "its list begins wrong";
  return decode_items(reader, value);
}

Complaint decode_jpeg_array(const Slice& bytes, SampleValue& value) {
  const Complaint complaint = decode_items(MdsValueReader(bytes), value);
  if (complaint.empty() && value.items.empty()) return "its list is empty";
  return complaint;
}

// The dimensions that stand before an array.
Complaint take_shape(MdsValueReader& reader, std::vector<std::uint64_t>& shape) {
  const auto head = reader.number<std::uint8_t>();
  if (!head) return "its shape is cut";
  const unsigned dimensions = *head >> 2;
  for (unsigned n = 0; n < dimensions; ++n) {
    std::optional<std::uint64_t> size;
    switch (*head & 3) {
      case 0:
        size = reader.number<std::uint8_t>();
        break;
      case 1:
        size = reader.number<std::uint16_t>();
        break;
      case 2:
        size = reader.number<std::uint32_t>();
        break;
      default:
        size = reader.number<std::uint64_t>();
        break;
    }
    if (!size) return "its shape is cut";
    shape.push_back(*size);
  }
  return {};
}

// "2,3" of "ndarray:float32:2,3".
std::optional<std::vector<std::uint64_t>> parse_shape(std::string_view text) {
  std::vector<std::uint64_t> shape;
  while (!text.empty()) {
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || shape.size() == kMdsDimensionsMax) return std::nullopt;
    shape.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(',') && text.size() > 1)
      text.remove_prefix(1);
    else if (!text.empty())
      return std::nullopt;
  }
  return shape;
}

// `what` follows "ndarray": nothing, ":float32" or ":float32:2,3".
Complaint decode_array(std::string_view what, const Slice& bytes, SampleValue& value) {
  MdsValueReader reader(bytes);
  const NumberType* type = nullptr;
  bool shape_known = false;
  if (what.empty()) {
    const auto code = reader.number<std::uint8_t>();
    const auto* const at = std::ranges::find(kNumberTypes, code.value_or(0), &NumberType::code);
    if (at == kNumberTypes.end()) return "its type of numbers is not known";
    type = at;
  } else {
    const std::size_t colon = what.find(':', 1);
    type = number_type(what.substr(1, colon == std::string_view::npos ? colon : colon - 1));
    if (type == nullptr) return "its type of numbers is not known";
    if (colon != std::string_view::npos) {
      auto shape = parse_shape(what.substr(colon + 1));
      if (!shape || shape->empty()) return "its encoding has no shape";
      value.shape = *std::move(shape);
      shape_known = true;
    }
  }
  if (!shape_known) {
    if (const Complaint complaint = take_shape(reader, value.shape); !complaint.empty()) {
      return complaint;
    }
  }
  std::uint64_t left = reader.rest().size() / type->bytes;
  if (value.shape.empty() || reader.rest().size() % type->bytes != 0) return "its size is wrong";
  // Divided rather than multiplied, which could overflow.
  for (const std::uint64_t size : value.shape) {
    if (size == 0 || left % size != 0) return "its size does not fit its shape";
    left /= size;
  }
  if (left != 1) return "its size does not fit its shape";
  value.type = type->name;
  value.bytes = reader.rest();
  return {};
}

Complaint decode_number(const NumberType& type, const Slice& bytes, SampleValue& value) {
  if (bytes.size() != type.bytes) return "its size is wrong";
  value.type = type.name;
  value.bytes = bytes;
  return {};
}

Complaint decode_value(std::string_view encoding, const Slice& bytes, SampleValue& value,
                       bool& known) {
  if (encoding == "bytes" || encoding == "jpeg" || encoding == "png") {
    value.bytes = bytes;
    return {};
  }
  if (encoding == "pkl") {
    value.type = "pickle";
    value.bytes = bytes;
    return {};
  }
  value.type = encoding;
  if (encoding == "str" || encoding == "json") return decode_text(bytes, value);
  if (encoding == "str_int" || encoding == "str_float" || encoding == "str_decimal") {
    return decode_digits(bytes, value);
  }
  if (encoding == "int") return decode_number(*number_type("int64"), bytes, value);
  if (const NumberType* type = number_type(encoding)) return decode_number(*type, bytes, value);
  if (encoding == "pil") return decode_pixels(bytes, value);
  if (encoding == "jpeg_array" || encoding == "jpegarray") return decode_jpeg_array(bytes, value);
  if (encoding == "list[pil]" || encoding == "list[jpeg]" || encoding == "list[png]") {
    return decode_list(bytes, value);
  }
  constexpr std::string_view kArray = "ndarray";
  if (encoding == kArray || encoding.starts_with("ndarray:")) {
    return decode_array(encoding.substr(kArray.size()), bytes, value);
  }
  known = false;
  return "its encoding is not known";
}

}  // namespace

Result<std::vector<SampleValue>> decode_mds_sample(const std::vector<MdsColumn>& columns,
                                                   const Slice& sample) {
  MdsValueReader reader(sample);
  const auto cut = [](std::string_view what) {
    return failure(StatusCode::kCorruption, fmt::format("a sample of MDS is {}", what));
  };
  std::vector<std::uint32_t> sizes;
  for (const MdsColumn& column : columns) {
    const auto size = column.size ? column.size : reader.number<std::uint32_t>();
    if (!size) return cut("cut before its columns");
    sizes.push_back(*size);
  }
  std::vector<SampleValue> values;
  for (std::size_t n = 0; n < columns.size(); ++n) {
    const auto bytes = reader.bytes(sizes[n]);
    if (!bytes) return cut(fmt::format("cut in column '{}'", columns[n].name));
    SampleValue value{.name = columns[n].name};
    bool known = true;
    const Complaint complaint = decode_value(columns[n].encoding, *bytes, value, known);
    if (!complaint.empty()) {
      return failure(known ? StatusCode::kCorruption : StatusCode::kUnsupported,
                     fmt::format("column '{}' ({}) of a sample of MDS: {}", columns[n].name,
                                 columns[n].encoding, complaint));
    }
    values.push_back(std::move(value));
  }
  if (!reader.rest().empty()) return cut("longer than its columns");
  return values;
}

}  // namespace millrace
