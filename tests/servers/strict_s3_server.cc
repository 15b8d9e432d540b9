#include "tests/servers/strict_s3_server.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>

#include <fmt/format.h>

#include "tests/servers/strict_s3_digest.h"
#include "tests/servers/strict_s3_operations.h"
#include "tests/servers/strict_s3_signature.h"
#include "tests/servers/strict_s3_world.h"

namespace millrace::testing {
namespace {

struct Address {
  std::string bucket;
  std::string key;
};

// The host without its port, when the bucket is part of it; "" for path style.
std::string virtual_host(const HttpRequest& request) {
  std::string host = request.headers.get("Host");
  host.resize(std::min(host.find(':'), host.size()));
  const bool is_ip = host.find_first_not_of("0123456789.") == std::string::npos;
  return is_ip || host.find('.') == std::string::npos ? "" : host;
}

std::string message_for(const std::string& code) {
  return code == "SlowDown" ? "Please reduce your request rate."
                            : "A fault that the test asked for: " + code;
}

void shape(const S3Fault& fault, HttpResponse& response) {
  response.delay_before = fault.delay_before;
  response.drip_bytes_per_second = fault.drip_bytes_per_second;
  response.close_after_bytes = fault.close_after_bytes;
  response.reset_after_bytes = fault.reset_after_bytes;
  response.drop_connection = response.drop_connection || fault.drop_connection;
}

}  // namespace

// Everything behind the socket: identify, fail on request, authenticate, route, remember.
class StrictS3Server::Service {
 public:
  explicit Service(StrictS3Options options)
      : world_(std::move(options)), credentials_(world_.options.credentials) {
    for (const std::string& bucket : world_.options.buckets) {
      world_.buckets[bucket];
    }
  }

  HttpResponse handle(const HttpRequest& request);

  S3World& world() { return world_; }
  void set_credentials(S3Credentials credentials) {
    std::lock_guard lock(world_.mutex);
    credentials_ = std::move(credentials);
  }
  void add_fault(S3Fault fault) {
    std::lock_guard lock(faults_mutex_);
    faults_.push_back(std::move(fault));
  }
  void clear_faults() {
    std::lock_guard lock(faults_mutex_);
    faults_.clear();
  }
  std::vector<S3RequestRecord> records() const {
    std::lock_guard lock(records_mutex_);
    return {records_.begin(), records_.end()};
  }
  void clear_records() {
    std::lock_guard lock(records_mutex_);
    records_.clear();
    forgotten_ = 0;
  }
  uint64_t forgotten() const {
    std::lock_guard lock(records_mutex_);
    return forgotten_;
  }

 private:
  Address address_of(const HttpRequest& request) const;
  std::optional<S3Fault> take_fault(const S3RequestRecord& record);
  S3Result<HttpResponse> perform(const HttpRequest& request, const Address& address);
  void remember(S3RequestRecord record);

  S3World world_;
  S3Credentials credentials_;  // Guarded by world_.mutex.

  // Apart from world_.mutex, so that a test's predicate may ask the server about its objects.
  std::mutex faults_mutex_;
  std::list<S3Fault> faults_;

  mutable std::mutex records_mutex_;
  std::deque<S3RequestRecord> records_;
  uint64_t forgotten_ = 0;

  std::atomic<uint64_t> next_request_{1};
};

Address StrictS3Server::Service::address_of(const HttpRequest& request) const {
  const std::string host = virtual_host(request);
  if (host.empty()) {
    const size_t slash = std::min(request.path.find('/', 1), request.path.size());
    return {request.path.substr(1, slash - 1),
            request.path.substr(std::min(slash + 1, request.path.size()))};
  }
  // Bucket names may hold dots, so the longest bucket that fits is meant.
  std::string bucket = host.substr(0, host.find('.'));
  std::lock_guard lock(world_.mutex);
  for (const auto& [name, unused] : world_.buckets) {
    if (host.starts_with(name + ".") && name.size() > bucket.size()) bucket = name;
  }
  return {bucket, request.path.substr(1)};
}

std::optional<S3Fault> StrictS3Server::Service::take_fault(const S3RequestRecord& record) {
  std::lock_guard lock(faults_mutex_);
  for (auto it = faults_.begin(); it != faults_.end(); ++it) {
    if (it->matches && !it->matches(record)) continue;
    S3Fault fault = *it;
    take_one(it->times);
    if (it->times <= 0) faults_.erase(it);
    return fault;
  }
  return std::nullopt;
}

S3Result<HttpResponse> StrictS3Server::Service::perform(const HttpRequest& request,
                                                        const Address& address) {
  S3SigningPolicy policy;
  bool checksums = true;
  bool bucket_exists = false;
  {
    std::lock_guard lock(world_.mutex);
    policy = {credentials_, world_.options.region, world_.quirks.redirect_to_region,
              world_.quirks.credentials_expire_at, world_.now()};
    checksums = !world_.quirks.no_checksum_support;
    bucket_exists = world_.buckets.contains(address.bucket);
  }
  if (auto valid = verify_signature(request, policy); !valid) {
    return std::unexpected(valid.error());
  }
  const auto operation = find_operation(request, !address.key.empty());
  if (!operation) return std::unexpected(operation.error());
  if (!bucket_exists) {
    auto error = s3_error(404, "NoSuchBucket", "The specified bucket does not exist");
    error.error().elements = {{"BucketName", address.bucket}};
    return error;
  }
  if (address.key.size() > kKeyBytesMax) {
    return s3_error(400, "KeyTooLongError", "Your key is too long");
  }
  return (*operation)(world_, {request, address.bucket, address.key, policy.now, checksums});
}

void StrictS3Server::Service::remember(S3RequestRecord record) {
  std::lock_guard lock(records_mutex_);
  records_.push_back(std::move(record));
  if (records_.size() > world_.options.requests_kept_max) {
    records_.pop_front();
    ++forgotten_;
  }
}

HttpResponse StrictS3Server::Service::handle(const HttpRequest& request) {
  const Address address = address_of(request);
  S3RequestRecord record{.method = request.method,
                         .bucket = address.bucket,
                         .key = address.key,
                         .query = request.query,
                         .range = request.headers.get("Range"),
                         .headers = request.headers,
                         .body_bytes = request.body.size(),
                         .connection_id = request.connection_id,
                         .status = 0,
                         .error_code = ""};
  const std::optional<S3Fault> fault = take_fault(record);
  S3Result<HttpResponse> result;
  if (fault && fault->status != 0) {
    result = s3_error(fault->status, fault->code, message_for(fault->code));
    if (fault->retry_after_s) {
      result.error().headers.add("Retry-After", std::to_string(*fault->retry_after_s));
    }
  } else {
    result = perform(request, address);
  }

  const std::string id = fmt::format("{:016X}", next_request_++);
  if (!result) {
    HttpResponse answer = xml_response(error_xml(result.error(), request.path, id));
    answer.status = result.error().status;
    for (const auto& [name, value] : result.error().headers) {
      answer.headers.add(name, value);
    }
    record.error_code = result.error().code;
    result = std::move(answer);
  }
  result->headers.add("x-amz-request-id", id);
  result->headers.add("Server", "StrictS3");
  {
    std::lock_guard lock(world_.mutex);
    result->headers.set("Date", http_date(world_.now()));
  }
  if (fault) shape(*fault, *result);
  // Before the answer leaves, so that a client that has it finds the request counted.
  record.status = result->status;
  remember(std::move(record));
  return std::move(*result);
}

bool S3RequestRecord::has_query(std::string_view name) const {
  return std::any_of(query.begin(), query.end(), [&](const auto& p) { return p.first == name; });
}

StrictS3Server::StrictS3Server(StrictS3Options options) {
  HttpServerOptions http_options;
  http_options.tls = options.tls;
  service_ = std::make_unique<Service>(std::move(options));
  http_ = std::make_unique<HttpServer>(
      [this](const HttpRequest& request) { return service_->handle(request); },
      std::move(http_options));
}

StrictS3Server::~StrictS3Server() = default;

std::string StrictS3Server::url() const { return http_->url(); }

std::string StrictS3Server::virtual_host_url(const std::string& bucket) const {
  const std::string scheme = url().substr(0, url().find(':'));
  return fmt::format("{}://{}.localhost:{}", scheme, bucket, port());
}

uint16_t StrictS3Server::port() const { return http_->port(); }
uint64_t StrictS3Server::connections_accepted() const { return http_->connections_accepted(); }
int StrictS3Server::connections_open() const { return http_->connections_open(); }
void StrictS3Server::close_connections() { http_->close_connections(); }

void StrictS3Server::set_quirks(StrictS3Quirks quirks) {
  edit_quirks([&](StrictS3Quirks& current) { current = std::move(quirks); });
}

StrictS3Quirks StrictS3Server::quirks() const {
  std::lock_guard lock(service_->world().mutex);
  return service_->world().quirks;
}

void StrictS3Server::edit_quirks(const std::function<void(StrictS3Quirks&)>& edit) {
  std::lock_guard lock(service_->world().mutex);
  edit(service_->world().quirks);
}

void StrictS3Server::fail_next(S3Fault fault) { service_->add_fault(std::move(fault)); }
void StrictS3Server::clear_faults() { service_->clear_faults(); }

void StrictS3Server::set_credentials(S3Credentials credentials) {
  service_->set_credentials(std::move(credentials));
}

std::vector<S3RequestRecord> StrictS3Server::requests() const { return service_->records(); }

size_t StrictS3Server::count(const S3Predicate& predicate) const {
  const std::vector<S3RequestRecord> records = service_->records();
  return static_cast<size_t>(std::count_if(records.begin(), records.end(), predicate));
}

void StrictS3Server::clear_requests() { service_->clear_records(); }
uint64_t StrictS3Server::requests_forgotten() const { return service_->forgotten(); }

void StrictS3Server::create_bucket(const std::string& bucket) {
  std::lock_guard lock(service_->world().mutex);
  service_->world().buckets[bucket];
}

std::string StrictS3Server::put_object(const std::string& bucket, const std::string& key,
                                       std::string body,
                                       std::map<std::string, std::string> metadata) {
  auto object = std::make_shared<S3Object>();
  object->etag = '"' + to_hex(md5(body)) + '"';
  object->checksum = full_checksum("CRC64NVME", body);
  object->body = std::move(body);
  object->properties.metadata = std::move(metadata);
  std::lock_guard lock(service_->world().mutex);
  object->modified = service_->world().now();
  const std::string etag = object->etag;
  service_->world().buckets.at(bucket).objects[key] = std::move(object);
  return etag;
}

std::optional<std::string> StrictS3Server::get_object(const std::string& bucket,
                                                      const std::string& key) const {
  std::lock_guard lock(service_->world().mutex);
  const S3ObjectPtr object = service_->world().buckets.at(bucket).find(key);
  if (!object) return std::nullopt;
  return object->body;
}

std::optional<std::string> StrictS3Server::get_etag(const std::string& bucket,
                                                    const std::string& key) const {
  std::lock_guard lock(service_->world().mutex);
  const S3ObjectPtr object = service_->world().buckets.at(bucket).find(key);
  if (!object) return std::nullopt;
  return object->etag;
}

void StrictS3Server::delete_object(const std::string& bucket, const std::string& key) {
  std::lock_guard lock(service_->world().mutex);
  service_->world().buckets.at(bucket).objects.erase(key);
}

size_t StrictS3Server::object_count(const std::string& bucket) const {
  std::lock_guard lock(service_->world().mutex);
  return service_->world().buckets.at(bucket).objects.size();
}

size_t StrictS3Server::open_upload_count(const std::string& bucket) const {
  std::lock_guard lock(service_->world().mutex);
  return service_->world().buckets.at(bucket).uploads.size();
}

}  // namespace millrace::testing
