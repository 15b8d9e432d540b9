// An S3 server in memory that is stricter than AWS and remembers what it was asked.
//
// Tests use it for what a real server cannot be told to do: count the GETs and their ranges, and
// answer wrongly on purpose. It shares no code with src/objectstore, so that a mistake in the
// client's signing, checksums or XML is not mirrored here.
#pragma once

#include <chrono>
#include <climits>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/servers/http_server.h"

namespace millrace::testing {

// For quirks that count down: never stop.
inline constexpr int kAlways = INT_MAX;

struct S3Credentials {
  std::string access_key = "test-access-key";
  std::string secret_key = "test-secret-key";
  std::string session_token;  // When not empty, every request must carry it.
};

struct StrictS3Options {
  S3Credentials credentials = {};
  std::string region = "us-east-1";
  std::vector<std::string> buckets = {"test-bucket"};
  uint64_t part_bytes_min = 5 * 1024 * 1024;  // Of every part but the last.
  std::optional<TlsIdentity> tls = {};
  size_t requests_kept_max = 200'000;  // Older ones are forgotten, see requests_forgotten().
};

// One request as the server saw it.
struct S3RequestRecord {
  std::string method;
  std::string bucket;
  std::string key;
  HttpQuery query;
  std::string range;  // The Range header, "" when absent.
  HttpHeaders headers;
  uint64_t body_bytes = 0;
  uint64_t connection_id = 0;
  int status = 0;          // As answered; 0 while a fault's predicate looks at it.
  std::string error_code;  // "" when the answer was no error.

  bool has_query(std::string_view name) const;
};

using S3Predicate = std::function<bool(const S3RequestRecord&)>;

// Something to do to the next requests that match.
struct S3Fault {
  S3Predicate matches;  // Empty: every request.
  int times = 1;
  // Answer this instead of doing anything. 0: do it, and only shape the answer as said below.
  int status = 503;
  std::string code = "SlowDown";
  std::optional<int> retry_after_s;
  std::chrono::milliseconds delay_before{0};
  uint64_t drip_bytes_per_second = 0;
  std::optional<uint64_t> close_after_bytes;
  std::optional<uint64_t> reset_after_bytes;
  bool drop_connection = false;  // With status 0: the work is done, the answer is lost.
};

enum class S3ListQuirk {
  kNone,
  kBadXml,         // Tags that do not match.
  kTruncatedXml,   // The first half of the answer, well framed.
  kHugeAnswer,     // 32 MiB of it.
  kOutOfOrder,     // Keys in descending order.
  kDuplicateKeys,  // Every key twice.
  kRepeatedToken,  // Truncated for ever: the continuation token leads to the same page.
};

// How the server departs from S3. An int counts the requests that will be treated so.
struct StrictS3Quirks {
  // Conditions.
  bool ignore_if_none_match_on_put = false;
  bool ignore_conditions_on_complete = false;
  bool ignore_conditions_on_copy = false;  // Those on the destination.
  bool ignore_copy_source_conditions = false;
  bool ignore_if_match_on_delete = false;
  bool ignore_if_match_on_get = false;
  bool refuse_quoted_if_match = false;  // Ceph 16: an equal quoted ETag on PUT gets 412.
  int conditional_conflicts = 0;        // Conditional writes get 409 ConditionalRequestConflict.

  // Checksums are accepted, neither verified, stored nor echoed.
  bool no_checksum_support = false;

  // Answers that lie about a write.
  int complete_answers_error_in_200 = 0;  // The upload stays completable.
  int copy_answers_error_in_200 = 0;      // Nothing is copied.
  int lose_complete_answer = 0;           // Completes, then RST: the retry gets NoSuchUpload.
  int lose_put_answer = 0;                // Stores, then RST.

  // GETs of objects.
  int wrong_content_range = 0;           // Says one byte later than it sends.
  int ranged_get_answers_200_whole = 0;  // Ignores Range.
  int short_body = 0;                    // FIN at half of the declared length.
  int long_body = 0;                     // 16 bytes beyond the declared length.
  int body_exceeds_range = 0;            // Well framed, one byte more than Content-Range says.
  int flip_bit_in_get_body = 0;
  int missing_etag = 0;
  // After that many GETs the object is replaced by one of equal size and other bytes, once.
  // 0: the next GET already sees it. Unset: off.
  std::optional<int> etag_changes_after_gets;

  // Listings.
  S3ListQuirk list_quirk = S3ListQuirk::kNone;
  int list_quirk_times = kAlways;

  // Who and when.
  std::chrono::seconds clock_offset{0};  // The server's clock is ahead by this.
  std::optional<std::chrono::system_clock::time_point> credentials_expire_at;
  // When set, requests signed for another region get 301 PermanentRedirect that names this one.
  std::string redirect_to_region;
  std::set<std::string> undeletable_keys;  // DELETE and batch delete get AccessDenied.
};

// Serves from construction to destruction. All methods may be called from any thread at any time.
class StrictS3Server {
 public:
  explicit StrictS3Server(StrictS3Options options = {});
  ~StrictS3Server();
  StrictS3Server(const StrictS3Server&) = delete;
  StrictS3Server& operator=(const StrictS3Server&) = delete;

  // "http[s]://127.0.0.1:PORT", for path style.
  std::string url() const;
  // "http[s]://BUCKET.localhost:PORT", for virtual-host style.
  std::string virtual_host_url(const std::string& bucket = "test-bucket") const;
  uint16_t port() const;
  uint64_t connections_accepted() const;
  int connections_open() const;
  void close_connections();

  // Behaviour.
  void set_quirks(StrictS3Quirks quirks);
  StrictS3Quirks quirks() const;  // Counters as they stand now.
  void edit_quirks(const std::function<void(StrictS3Quirks&)>& edit);
  // Faults are tried in the order given; the first that matches and is not used up applies.
  void fail_next(S3Fault fault);
  void clear_faults();
  void set_credentials(S3Credentials credentials);

  // What was asked, in the order in which it was answered.
  std::vector<S3RequestRecord> requests() const;
  size_t count(const S3Predicate& predicate) const;
  void clear_requests();
  uint64_t requests_forgotten() const;

  // Direct access, without HTTP. An unknown bucket throws std::out_of_range.
  void create_bucket(const std::string& bucket);
  // Returns the quoted ETag.
  std::string put_object(const std::string& bucket, const std::string& key, std::string body,
                         std::map<std::string, std::string> metadata = {});
  std::optional<std::string> get_object(const std::string& bucket, const std::string& key) const;
  std::optional<std::string> get_etag(const std::string& bucket, const std::string& key) const;
  void delete_object(const std::string& bucket, const std::string& key);
  size_t object_count(const std::string& bucket) const;
  size_t open_upload_count(const std::string& bucket) const;

 private:
  class Service;

  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> http_;  // After service_: it stops before what it calls is gone.
};

}  // namespace millrace::testing
