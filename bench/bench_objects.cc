#include "bench/bench_objects.h"

#include <atomic>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/random.h"
#include "bench/curl_peer.h"
#include "bench/peer_process.h"
#include "objectstore/s3/s3_headers.h"
#include "tests/servers/signed_request.h"

namespace millrace::bench {
namespace {

std::string random_bytes(std::uint64_t count) {
  SeededRandom random(1);
  std::string bytes(count, '\0');
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size();
       at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  return bytes;
}

std::string contents(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void put_small(const BenchTarget& target, const std::string& key, const std::string& body,
               std::uint32_t crc) {
  const auto answer = millrace::testing::send_signed(
      {.method = "PUT",
       .url = target.url_of(key),
       .body = body,
       .headers = {fmt::format("x-amz-meta-{}: {:08x}", s3::kChecksumMetadata, crc)},
       .access_key = target.access_key,
       .secret_key = target.secret_key});
  if (answer.status == 200) return;
  throw std::runtime_error(fmt::format("PUT {}: status {} {} {}", target.url_of(key), answer.status,
                                       answer.error, answer.body));
}

}  // namespace

BenchObjects write_files(const std::string& directory, std::size_t count,
                         std::uint64_t object_bytes, std::uint64_t piece_bytes) {
  BenchObjects objects;
  objects.object_bytes = object_bytes;
  objects.piece_bytes = piece_bytes;
  std::string piece = random_bytes(piece_bytes);
  std::uint64_t stamp = 0;
  for (std::size_t object = 0; object < count; ++object) {
    objects.keys.push_back(fmt::format("object-{:05}", object));
    std::ofstream file(directory + "/" + objects.keys.back(), std::ios::binary);
    for (std::uint64_t at = 0; at < object_bytes; at += piece_bytes) {
      std::memcpy(piece.data(), &stamp, sizeof stamp);
      ++stamp;
      objects.piece_crcs.push_back(crc32c(as_bytes(piece)));
      file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    }
    if (!file.flush()) throw std::runtime_error("cannot write to " + directory);
  }
  return objects;
}

void upload_large(const BenchTarget& target, const BenchObjects& objects,
                  const std::string& directory) {
  std::vector<std::string> command = {require_program("curl"), "--disable", "-sSf", "--noproxy",
                                      "*"};
  for (const std::string& argument : curl_signing_arguments(target))
    command.push_back(argument);
  for (const std::string& key : objects.keys) {
    command.insert(command.end(), {"-T", directory + "/" + key, target.url_of(key)});
  }
  (void)run_peer({command}, directory);
}

void upload_small(const BenchTarget& target, const BenchObjects& objects,
                  const std::string& directory) {
  constexpr int kThreads = 8;
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::string failure;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      try {
        for (std::size_t n = next++; n < objects.keys.size() && !failed; n = next++) {
          const std::string& key = objects.keys[n];
          put_small(target, key, contents(directory + "/" + key), objects.piece_crcs[n]);
        }
      } catch (const std::exception& error) {
        if (!failed.exchange(true)) failure = error.what();
      }
    });
  }
  threads.clear();
  if (failed) throw std::runtime_error(failure);
}

}  // namespace millrace::bench
