// SPDX-License-Identifier: Apache-2.0
// Measures how much of a file is in the page cache: with cachestat(2) since Linux 6.5; before that by mapping parts of
// it, which reads nothing, and mincore(2).

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

#include "feedline/observe.h"
#include "observe/page_cache.h"
#include "observe/proc_file.h"

namespace feedline {
namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// A partition's folder is inside the folder of its disk.
void find_device(dev_t device, FileFacts& facts) {
  std::error_code failed;
  const std::string link = "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::filesystem::path folder = std::filesystem::canonical(link, failed);
  if (failed) return;
  if (std::filesystem::exists(folder / "partition", failed)) folder = folder.parent_path();
  facts.device = folder.filename();
  if (const auto text = observe::read_file(folder / "queue/rotational"); text && !text->empty())
    facts.rotational = text->front() == '1';
}

}  // namespace

std::vector<FileFacts> look_at_files(const std::vector<std::string>& paths) {
  std::vector<FileFacts> found;
  for (const std::string& path : paths) {
    const OpenFile file(path);
    struct stat status {};
    if (file.number() < 0 || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    FileFacts facts;
    facts.path = path;
    facts.bytes = static_cast<std::uint64_t>(status.st_size);
    const bool own = status.st_uid == ::geteuid() || ::access(path.c_str(), W_OK) == 0;
    if (facts.bytes == 0)
      facts.cached_bytes = 0;
    else if (!observe::ask_cachestat(file.number(), facts) && own)  // for other users, mincore reports all pages as
                                                                    // resident
      observe::ask_mincore(file.number(), facts);
    find_device(status.st_dev, facts);
    found.push_back(std::move(facts));
  }
  return found;
}

}  // namespace feedline
