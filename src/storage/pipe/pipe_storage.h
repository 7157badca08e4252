// SPDX-License-Identifier: Apache-2.0
#pragma once

// The standard output of commands as objects: "pipe:curl -s https://host/000.tar".
//
//   open()  ─►  /bin/sh -c COMMAND   stdin: /dev/null   stdout: an unnamed file   stderr: another one
//           ─►  waits for its end; with status 0 and at least one byte, the file is the object
//
// A PipeStorage runs each command once, even if it is opened repeatedly. The output file is deleted when the storage
// object and its readers are destroyed. The text after "pipe:" is the command as written by the user; data that was
// read never becomes part of a command.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "storage/file_descriptor.h"
#include "storage/storage.h"

namespace feedline::storage {

inline constexpr std::string_view kPipe = "pipe:";

// Thread-safe. Object names are the text with placeholders such as "<hidden-0>" for secrets.
class PipeStorage final : public Storage {
 public:
  // folder: the location of the output files; if empty, TMPDIR or /var/tmp.
  explicit PipeStorage(std::string folder = {});
  ~PipeStorage() override;

  // Returns the storage's name for the object of a command, or for a pattern of commands. Requires: the text begins
  // with kPipe.
  std::string name_of(std::string_view text);

  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override;
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  Result<std::vector<Entry>> list(const std::string& directory) const override;
  // Returns a result only for commands that have already run, and does not run commands.
  Result<ObjectStat> stat(const std::string& path) const override;
  Result<bool> is_directory(const std::string& path) const override;
  std::string note() const override;
  std::unique_ptr<Transport> own_transport() const override;

 private:
  struct Output;
  Result<const Output*> output_of(const std::string& path) const;
  std::string command_of(const std::string& path) const;
  std::string without_secrets(const std::string& text) const;
  Result<FileDescriptor> run(const std::string& path) const;

  const std::string folder_;
  mutable std::mutex mutex_;
  std::vector<std::string> secrets_;                                // guarded by mutex_; "<hidden-I>" is number I
  mutable std::map<std::string, std::unique_ptr<Output>> outputs_;  // guarded by mutex_; never removed
};

}  // namespace feedline::storage
