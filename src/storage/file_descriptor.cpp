// SPDX-License-Identifier: Apache-2.0
#include "storage/file_descriptor.h"

#include <cerrno>

namespace feedline::storage {

int FileDescriptor::close_now() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0 || ::close(fd) == 0) return 0;
  return errno == EINTR ? 0 : errno;  // Linux has closed it even when interrupted
}

}  // namespace feedline::storage
