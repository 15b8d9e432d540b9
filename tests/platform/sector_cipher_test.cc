#include "platform/sector_cipher.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/hex.h"

namespace millrace {
namespace {

constexpr std::size_t kSector = SectorCipher::kSectorBytes;

std::unique_ptr<SectorCipher> cipher_with(char digit) {
  return SectorCipher::make(SecretKey::parse(std::string(64, digit)).value()).value();
}

std::vector<std::byte> random_content(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random());
  return bytes;
}

const SectorCipher::Name kName = {std::byte{1}, std::byte{2}, std::byte{3}};

TEST(SectorCipher, GivesBackWhatItTookAtEveryLength) {
  const auto cipher = cipher_with('a');
  for (const std::size_t base : {std::size_t{0}, kSector, 3 * kSector}) {
    for (const std::size_t more : {0, 1, 2, 15, 16, 17, 31, 4095}) {
      const std::vector<std::byte> plain = random_content(base + more, base + more);
      std::vector<std::byte> stored(plain.size());
      ASSERT_TRUE(cipher->encrypt(kName, 0, plain, stored).ok());
      if (plain.size() >= 8) {
        EXPECT_NE(stored, plain);
      }
      // In place.
      ASSERT_TRUE(cipher->decrypt(kName, 0, stored, stored).ok());
      EXPECT_EQ(stored, plain) << plain.size() << " bytes";
    }
  }
}

TEST(SectorCipher, EachSectorIsReadAlone) {
  const auto cipher = cipher_with('a');
  const std::vector<std::byte> plain = random_content(5 * kSector + 7, 1);
  std::vector<std::byte> stored(plain.size());
  ASSERT_TRUE(cipher->encrypt(kName, 0, plain, stored).ok());
  for (std::size_t at = 0; at < plain.size(); at += kSector) {
    const std::size_t length = std::min(kSector, plain.size() - at);
    std::vector<std::byte> part(length);
    ASSERT_TRUE(cipher->decrypt(kName, at, ByteView(stored).subspan(at, length), part).ok());
    EXPECT_TRUE(std::ranges::equal(part, ByteView(plain).subspan(at, length))) << "at " << at;
  }
}

// So that nobody learns which parts are alike.
TEST(SectorCipher, TheSameBytesLookDifferentInEachPlaceAndUnderEachKey) {
  const std::vector<std::byte> plain(kSector + 9);
  SectorCipher::Name other = kName;
  other[15] = std::byte{9};
  std::set<std::string> seen;
  std::size_t looked = 0;
  for (const char key : {'a', 'b'}) {
    const auto cipher = cipher_with(key);
    for (const SectorCipher::Name& name : {kName, other}) {
      for (const std::uint64_t offset : {std::uint64_t{0}, 2 * kSector, std::size_t{1} << 40}) {
        std::vector<std::byte> stored(plain.size());
        ASSERT_TRUE(cipher->encrypt(name, offset, plain, stored).ok());
        seen.insert(to_hex(ByteView(stored).first(kSector)));
        seen.insert(to_hex(ByteView(stored).subspan(kSector)));
        looked += 2;
      }
    }
  }
  EXPECT_EQ(seen.size(), looked);
}

TEST(SectorCipher, TheCheckTellsKeysApartAndIsStable) {
  EXPECT_EQ(cipher_with('a')->key_check(), cipher_with('a')->key_check());
  EXPECT_NE(cipher_with('a')->key_check(), cipher_with('b')->key_check());
  EXPECT_EQ(cipher_with('a')->key_check().size(), 32u);
}

// A value of AES-256-XTS made by another implementation, so that the format is what its page says.
TEST(SectorCipher, TheFormatStays) {
  std::vector<std::byte> plain(48);
  for (std::size_t i = 0; i < plain.size(); ++i)
    plain[i] = static_cast<std::byte>(i);
  std::vector<std::byte> stored(plain.size());
  ASSERT_TRUE(cipher_with('1')->encrypt(kName, 2 * kSector, plain, stored).ok());
  EXPECT_EQ(to_hex(stored),
            "cd5125aaff44b6f80e1553651016b2b145bfc877bb3abaca09fee93641be0a26070b68b9fb668bbbfbbb97"
            "8fd6e8f724");
  std::vector<std::byte> tail(5);
  ASSERT_TRUE(cipher_with('1')->encrypt(kName, 0, ByteView(plain).first(5), tail).ok());
  EXPECT_EQ(to_hex(tail), "ade7e0b4a2");
}

TEST(SecretKey, IsSixtyFourDigits) {
  EXPECT_TRUE(SecretKey::parse("  " + std::string(64, 'A') + "\n"));
  for (const std::string& text :
       {std::string(), std::string(63, '1'), std::string(66, '1'), std::string(64, 'g')}) {
    const auto key = SecretKey::parse(text);
    ASSERT_FALSE(key);
    EXPECT_EQ(key.error().code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(text.empty() || key.error().message().find(text) == std::string::npos);
  }
}

class KeyFileTest : public ::testing::Test {
 protected:
  KeyFileTest() { path_ += "/key"; }
  ~KeyFileTest() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& content, mode_t mode) {
    std::ofstream(path_) << content;
    EXPECT_EQ(::chmod(path_.c_str(), mode), 0);
    return path_;
  }

 private:
  std::string directory_ = ::testing::TempDir() + "key_file_XXXXXX";
  std::string path_ = ::mkdtemp(directory_.data());
};

TEST_F(KeyFileTest, HoldsDigitsOrBytes) {
  const auto digits = SecretKey::load(write(std::string(64, '4') + "\n", 0600));
  ASSERT_TRUE(digits) << digits.error().to_string();
  const auto bytes = SecretKey::load(write(std::string(32, 'D'), 0400));
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  EXPECT_TRUE(std::ranges::equal(digits->bytes(), bytes->bytes()));
}

TEST_F(KeyFileTest, IsForItsOwnerAlone) {
  const auto key = SecretKey::load(write(std::string(64, '4'), 0640));
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code(), StatusCode::kPermissionDenied);
  EXPECT_NE(key.error().message().find("chmod 600"), std::string::npos);
}

TEST_F(KeyFileTest, SaysWhichFileIsNoKey) {
  const std::string path = write("secret", 0600);
  const auto key = SecretKey::load(path);
  ASSERT_FALSE(key);
  EXPECT_NE(key.error().to_string().find(path), std::string::npos);
  EXPECT_EQ(key.error().to_string().find("secret"), std::string::npos);
  EXPECT_EQ(SecretKey::load(path + "-none").error().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace millrace
