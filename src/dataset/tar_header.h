#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

// Where the fields of a tar header block stand (POSIX.1-2001, ustar).
struct TarField {
  std::size_t offset = 0;
  std::size_t length = 0;
};
inline constexpr TarField kTarNameField{.offset = 0, .length = 100};
inline constexpr TarField kTarModeField{.offset = 100, .length = 8};
inline constexpr TarField kTarUserField{.offset = 108, .length = 8};
inline constexpr TarField kTarGroupField{.offset = 116, .length = 8};
inline constexpr TarField kTarSizeField{.offset = 124, .length = 12};
inline constexpr TarField kTarTimeField{.offset = 136, .length = 12};
inline constexpr TarField kTarChecksumField{.offset = 148, .length = 8};
inline constexpr TarField kTarTypeField{.offset = 156, .length = 1};
inline constexpr TarField kTarLinkField{.offset = 157, .length = 100};
inline constexpr TarField kTarMagicField{.offset = 257, .length = 8};
inline constexpr TarField kTarUserNameField{.offset = 265, .length = 32};
inline constexpr TarField kTarGroupNameField{.offset = 297, .length = 32};
inline constexpr TarField kTarDeviceMajorField{.offset = 329, .length = 8};
inline constexpr TarField kTarDeviceMinorField{.offset = 337, .length = 8};
inline constexpr TarField kTarPrefixField{.offset = 345, .length = 155};

// Leaves room for headers in 63 bits, which is what a file offset has.
inline constexpr std::uint64_t kTarMemberBytesMax = std::uint64_t{1} << 62;

}  // namespace millrace
