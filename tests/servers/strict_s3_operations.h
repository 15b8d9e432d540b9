// The operations of the strict S3 server. Each takes the lock of the world itself and answers a
// response, or the error that S3 gives. One table in strict_s3_routes.cc leads to them.
#pragma once

#include <string>

#include "tests/servers/strict_s3_answer.h"
#include "tests/servers/strict_s3_world.h"

namespace millrace::testing {

using S3Operation = S3Result<HttpResponse> (*)(S3World& world, const S3Call& call);

// strict_s3_objects.cc
S3Result<HttpResponse> put_object(S3World& world, const S3Call& call);
S3Result<HttpResponse> delete_object(S3World& world, const S3Call& call);
// strict_s3_get.cc; HEAD is a GET whose body the HTTP server leaves out.
S3Result<HttpResponse> get_object(S3World& world, const S3Call& call);
// strict_s3_batch_delete.cc
S3Result<HttpResponse> delete_objects(S3World& world, const S3Call& call);
// strict_s3_list.cc
S3Result<HttpResponse> list_objects_v2(S3World& world, const S3Call& call);
// strict_s3_copy.cc
S3Result<HttpResponse> copy_object(S3World& world, const S3Call& call);
S3Result<HttpResponse> upload_part_copy(S3World& world, const S3Call& call);
// strict_s3_multipart.cc
S3Result<HttpResponse> create_upload(S3World& world, const S3Call& call);
S3Result<HttpResponse> upload_part(S3World& world, const S3Call& call);
S3Result<HttpResponse> abort_upload(S3World& world, const S3Call& call);
S3Result<HttpResponse> list_parts(S3World& world, const S3Call& call);
S3Result<HttpResponse> list_uploads(S3World& world, const S3Call& call);
// strict_s3_complete.cc
S3Result<HttpResponse> complete_upload(S3World& world, const S3Call& call);
// strict_s3_routes.cc
S3Result<HttpResponse> head_bucket(S3World& world, const S3Call& call);
S3Result<HttpResponse> get_bucket_location(S3World& world, const S3Call& call);

// The operation that a request asks for, or 501 NotImplemented, 405 MethodNotAllowed. Looks at
// method, query and headers; refuses every parameter and x-amz-* header that it does not know.
S3Result<S3Operation> find_operation(const HttpRequest& request, bool has_key);

// Pieces that several operations share.
std::unexpected<S3Error> no_such_key();
std::unexpected<S3Error> no_such_upload();
// 1 to 10000, or nothing.
std::optional<int> parse_part_number(const std::string& text);
// Stores a part and answers its ETag; refuses an unknown upload. The caller holds the lock.
S3Result<S3Part*> store_part(S3World& world, const S3Call& call, S3Part part);
// A body that claims 200 and turns out to be an error.
HttpResponse error_in_200();

}  // namespace millrace::testing
