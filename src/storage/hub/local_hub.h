// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the cache that huggingface_hub writes:
//
//   datasets--ORG--NAME/refs/REVISION         a commit; may be outdated
//                       snapshots/COMMIT/PATH  a file, usually a link to ../../blobs/HASH
//                       blobs/HASH             named by HubFile::hash

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "storage/hub/hub_answers.h"
#include "storage/hub/hub_name.h"
#include "storage/reader.h"

namespace feedline::storage {

// Names have a commit as their revision. Thread-safe.
class LocalHub {
 public:
  explicit LocalHub(std::string folder) : folder_(std::move(folder)) {}

  // Returns the commit of a branch or tag when it was last downloaded.
  std::optional<std::string> commit_of(const HubName& name) const;
  // Returns the path of a file if it is complete: if it exists and has this size.
  std::optional<std::string> file(const HubName& name, std::uint64_t bytes) const;
  // Lists all files of a commit, in any order. ENOENT: nothing of this commit was downloaded.
  Result<std::vector<HubFile>> files(const HubName& name) const;

 private:
  std::string folder_of(const HubName& name) const;
  const std::string folder_;
};

// Reads a file of the local cache under its name on the Hub.
class LocalHubReader final : public Reader {
 public:
  LocalHubReader(std::string name, ObjectStat version, std::unique_ptr<Reader> file)
      : name_(std::move(name)), version_(version), file_(std::move(file)) {}

  Result<ObjectStat> stat() const override { return version_; }
  Result<ObjectStat> version() const override { return version_; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    return file_->read_at(offset, out);
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const override {
    return file_->view(offset, bytes);
  }
  std::span<const std::byte> mapping() const override { return file_->mapping(); }
  int descriptor() const override { return file_->descriptor(); }
  const std::string& name() const override { return name_; }

 private:
  const std::string name_;
  const ObjectStat version_;
  const std::unique_ptr<Reader> file_;
};

}  // namespace feedline::storage
