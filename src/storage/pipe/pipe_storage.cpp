// SPDX-License-Identifier: Apache-2.0
#include "storage/pipe/pipe_storage.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "storage/file_read.h"
#include "storage/local_file.h"
#include "storage/local_storage.h"
#include "storage/pipe/command_text.h"
#include "storage/pread_reader.h"

extern "C" char** environ;

namespace feedline::storage {
namespace {

constexpr std::size_t kMostSaid = 4096;  // the end of a command's stderr
constexpr std::size_t kMostLines = 5;
constexpr std::string_view kHidden = "<hidden-";

std::string folder_or_default(std::string folder) {
  if (!folder.empty()) return folder;
  const char* const chosen = std::getenv("TMPDIR");
  return chosen && *chosen ? chosen : "/var/tmp";  // often on a disk when /tmp is in memory
}

// Creates an unnamed file, which is deleted when its last descriptor is closed.
Result<FileDescriptor> nameless_file(const std::string& folder) {
  FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.valid()) return file;
  std::string name = folder + "/feedline-XXXXXX";  // for file systems without O_TMPFILE
  file = FileDescriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid())
    return storage_error("cannot store the output of a command in '" + folder + "' (TMPDIR chooses another folder)",
                         errno);
  ::unlink(name.c_str());
  return file;
}

// The attributes of a child process, for posix_spawn.
class Child {
 public:
  Child() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    // Python ignores SIGPIPE, and the calling thread may block signals: commands expect neither
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~Child() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns 0 or errno.
  int run(const std::string& command, int output, int errors, int& status) {
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    std::string shell = "sh", option = "-c", text = command;
    const std::array<char*, 4> arguments{shell.data(), option.data(), text.data(), nullptr};
    pid_t child = 0;
    if (const int failed = ::posix_spawn(&child, "/bin/sh", &actions_, &attributes_, arguments.data(), environ))
      return failed;
    while (::waitpid(child, &status, 0) < 0)
      if (errno != EINTR) return errno;
    return 0;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::uint64_t bytes_in(const FileDescriptor& file) {
  struct ::stat status {};
  return ::fstat(file.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

// Returns the last lines of a command's stderr, joined.
std::string last_lines(const FileDescriptor& file) {
  const std::uint64_t bytes = bytes_in(file);
  std::string text(std::min<std::uint64_t>(bytes, kMostSaid), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(bytes - text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  std::size_t begin = text.size(), lines = 0;
  while (begin > 0 && (text[begin - 1] != '\n' || ++lines < kMostLines)) --begin;
  text.erase(0, begin);
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos;) text.replace(at, 1, " | ");
  return text;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) + ")";
  return "ended with status " + std::to_string(WEXITSTATUS(status)) +
         (WEXITSTATUS(status) == 127 ? " (no such command)" : "");
}

std::string amount(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = 1 << 20;
  return bytes < kMiB ? std::to_string(bytes) + " bytes" : std::to_string(bytes / kMiB) + " MiB";
}

struct Replaced {
  std::size_t length;  // of the bytes at the offset
  std::string by;
};

// Replaces parts of the text from left to right: `replace` is called with the remaining text at each position.
template <typename Replace>
std::string replaced(std::string_view text, const Replace& replace) {
  std::string result;
  while (!text.empty()) {
    const std::optional<Replaced> one = replace(text);
    result += one ? one->by : std::string(text.substr(0, 1));
    text.remove_prefix(one ? one->length : 1);
  }
  return result;
}

// Returns a placeholder such as "<hidden-12>" if there is one at this position in the text, otherwise an empty string.
std::string_view token_at(std::string_view text, std::size_t at) {
  constexpr std::size_t kMostDigits = 9;
  text.remove_prefix(at);
  if (!text.starts_with(kHidden)) return {};
  const std::size_t end = text.find_first_not_of("0123456789", kHidden.size());
  if (end == text.npos || text[end] != '>' || end == kHidden.size() || end > kHidden.size() + kMostDigits) return {};
  return text.substr(0, end + 1);
}

std::unexpected<Error> failed(const std::string& path, const std::string& what, int number = 0) {
  auto error = storage_error(what, number);
  error.error().where.shard = path;
  return error;
}

}  // namespace

// One run of a command: the first caller runs it, and other callers wait.
struct PipeStorage::Output {
  std::mutex mutex;
  std::optional<Result<FileDescriptor>> file;  // guarded by mutex; unchanged once set
};

PipeStorage::PipeStorage(std::string folder) : folder_(folder_or_default(std::move(folder))) {}
PipeStorage::~PipeStorage() = default;

std::string PipeStorage::name_of(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> hidden = secrets_in(text.substr(kPipe.size()));
  for (std::size_t at = 0; (at = text.find(kHidden, at)) != text.npos; ++at)
    hidden.emplace_back(text.substr(at, token_at(text, at).size()));  // text that only resembles a placeholder
  std::erase(hidden, "");
  return replaced(text, [&](std::string_view rest) -> std::optional<Replaced> {
    const auto found = std::ranges::find_if(hidden, [&](const std::string& one) { return rest.starts_with(one); });
    if (found == hidden.end()) return {};
    const auto known = std::ranges::find(secrets_, *found);
    const auto number = known - secrets_.begin();
    if (known == secrets_.end()) secrets_.push_back(*found);
    return Replaced{found->size(), std::string(kHidden) + std::to_string(number) + ">"};
  });
}

std::string PipeStorage::command_of(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return replaced(std::string_view(path).substr(kPipe.size()), [&](std::string_view rest) -> std::optional<Replaced> {
    const std::string_view token = token_at(rest, 0);
    if (token.empty()) return {};
    const std::size_t number = std::stoul(std::string(token.substr(kHidden.size())));
    if (number >= secrets_.size()) return {};
    return Replaced{token.size(), secrets_[number]};
  });
}

std::string PipeStorage::without_secrets(const std::string& text) const {
  const std::lock_guard lock(mutex_);
  return replaced(text, [&](std::string_view rest) -> std::optional<Replaced> {
    const auto found = std::ranges::find_if(secrets_, [&](const std::string& one) { return rest.starts_with(one); });
    if (found == secrets_.end()) return {};
    return Replaced{found->size(), "<hidden>"};
  });
}

Result<FileDescriptor> PipeStorage::run(const std::string& path) const {
  FEEDLINE_TRY(FileDescriptor output, nameless_file(folder_));
  FEEDLINE_TRY(const FileDescriptor errors, nameless_file(folder_));
  Child child;
  int status = 0;
  if (const int number = child.run(command_of(path), output.get(), errors.get(), status))
    return failed(path, "cannot run the command with /bin/sh", number);
  const std::string said = without_secrets(last_lines(errors));
  const std::string last_output = said.empty() ? "" : "; the last it said: " + said;
  if (status != 0) return failed(path, "the command " + how_it_ended(status) + last_output);
  if (bytes_in(output) == 0) return failed(path, "the command succeeded but wrote nothing" + last_output);
  return output;
}

Result<const PipeStorage::Output*> PipeStorage::output_of(const std::string& path) const {
  Output* output = nullptr;
  {
    const std::lock_guard lock(mutex_);
    auto& location = outputs_[path];
    if (!location) location = std::make_unique<Output>();
    output = location.get();
  }
  const std::lock_guard lock(output->mutex);
  if (!output->file) output->file = run(path);
  if (!*output->file) return std::unexpected(output->file->error());
  return output;
}

Result<std::unique_ptr<Reader>> PipeStorage::open(const std::string& path, Access /*access*/) const {
  FEEDLINE_TRY(const Output* const output, output_of(path));
  FileDescriptor own(::fcntl((*output->file)->get(), F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return failed(path, "cannot open the command's output", errno);
  return std::make_unique<PreadReader>(path, std::move(own), system_reads());
}

Result<std::span<const std::byte>> PipeStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                         std::uint64_t most) const {
  FEEDLINE_TRY(const Output* const output, output_of(path));
  const FileDescriptor& file = **output->file;
  return read_file(system_reads(), file.get(), FileRead(path, buffer, bytes_in(file), most));
}

Result<std::vector<Entry>> PipeStorage::list(const std::string& directory) const {
  return failed(directory, "the output of a command cannot be listed as a folder", ENOTDIR);
}

Result<ObjectStat> PipeStorage::stat(const std::string& path) const {
  {
    const std::lock_guard lock(mutex_);
    if (!outputs_.contains(path)) return failed(path, "the command has not been run", ENOENT);
  }
  FEEDLINE_TRY(const auto reader, open(path, Access::kRead));
  return reader->stat();
}

Result<bool> PipeStorage::is_directory(const std::string& /*path*/) const { return false; }

std::string PipeStorage::note() const {
  std::uint64_t bytes = 0, commands = 0;
  // Outputs are never removed. A thread that runs a command locks mutex_ while it holds the command's lock.
  std::vector<Output*> outputs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, output] : outputs_) outputs.push_back(output.get());
  }
  for (Output* const output : outputs) {
    const std::lock_guard own(output->mutex);
    if (!output->file || !*output->file) continue;
    ++commands;
    bytes += bytes_in(**output->file);
  }
  return std::to_string(commands) + (commands == 1 ? " command" : " commands") + " run by /bin/sh, with an output of " +
         amount(bytes) + " that is stored in '" + folder_ + "' while the dataset is open";
}

std::unique_ptr<Transport> PipeStorage::own_transport() const { return local_storage()->own_transport(); }

}  // namespace feedline::storage
