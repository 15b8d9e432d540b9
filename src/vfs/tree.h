#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/completion.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/block_cache.h"
#include "vfs/node.h"

namespace millrace {

// A file that somebody has open. What it reads stays what it was at the open. Safe from any thread;
// reads under way keep what they need.
class OpenFile {
 public:
  virtual ~OpenFile() = default;

  virtual std::uint64_t size() const = 0;
  // Those that it had at the open, whether or not the tree knows the node still.
  virtual NodeAttributes attributes() const = 0;
  // Delivers the range, cut at the end of the file; nothing beyond it. kPreconditionFailed when the
  // object behind it was replaced: the file cannot be read any more. Otherwise as the cache.
  virtual void read(const RequestContext& context, ByteRange range, Completion<Slice> done) = 0;
  // The file as a file of this machine. kNotFound when it is not cached whole, or is not exactly
  // one object. Blocks.
  virtual Result<std::unique_ptr<CompleteObject>> complete(const RequestContext& context) = 0;
  // Charges the file to a caller who was handed it whole: nobody sees what he reads of it.
  virtual void count_handed_out(const RequestContext& context) = 0;
};

// What is below a node, as df shows it.
struct TreeUsage {
  std::uint64_t bytes = 0;
  std::uint64_t nodes = 0;
};

// A fact about a node for people and scripts: ("version", "imagenet@v2").
struct NodeFact {
  std::string name;
  std::string value;
};

// Directories and files, in the terms of no protocol. Codes: kNotFound for a name or number that
// leads nowhere (any more); kInvalidArgument for what a node of its kind cannot do; the others are
// the store's and the manifest's, and may pass.
//
// All methods are safe from any thread, and block unless they say not.
class Tree {
 public:
  virtual ~Tree() = default;

  virtual Result<NodeAttributes> attributes(const RequestContext& context, NodeNumber node) = 0;
  virtual Result<NodeAttributes> lookup(const RequestContext& context, NodeNumber directory,
                                        std::string_view name) = 0;
  // The directory that has it; the root of all is its own.
  virtual Result<NodeNumber> parent(const RequestContext& context, NodeNumber node) = 0;

  // Shows the children behind `cookie`, 0 for all, until the visitor returns false; neither "." nor
  // "..". A cookie holds for as long as the directory is what it was.
  using Visitor = std::function<bool(const NodeEntry&)>;
  virtual Status read_directory(const RequestContext& context, NodeNumber directory,
                                std::uint64_t cookie, const Visitor& visitor) = 0;

  virtual Result<std::string> read_link(const RequestContext& context, NodeNumber symlink) = 0;
  virtual Result<std::shared_ptr<OpenFile>> open(const RequestContext& context,
                                                 NodeNumber file) = 0;
  virtual Result<std::vector<NodeFact>> facts(const RequestContext& context, NodeNumber node) = 0;
  // Of the version that the node is in; nothing above the versions.
  virtual Result<TreeUsage> usage(const RequestContext& context, NodeNumber node) = 0;
};

}  // namespace millrace
