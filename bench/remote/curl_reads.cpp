// SPDX-License-Identifier: Apache-2.0
// Measures reads with only the machine's libcurl: the limit for Feedline's client. One thread uses the multi interface,
// reuses connections and handles, and copies bodies to one buffer per concurrent read. Contains no code of Feedline
// except the list of reads (reads.h).
//
//   curl_reads AT_ONCE [BUFFER_BYTES] < READS; with CURL_AWS=KEY:SECRET, curl signs requests for S3

#include <curl/curl.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "reads.h"

namespace {

using feedline::bench::RemoteRead;
constexpr long kBufferBytes = 256 * 1024;  // curl's default of 16 KB needs more calls
constexpr std::size_t kRoom = 8 << 20;

struct Location {
  CURL* handle = nullptr;
  std::unique_ptr<char[]> room;
  std::size_t got = 0, most = 0;
};

std::size_t take(char* data, std::size_t size, std::size_t count, void* into) {
  auto& location = *static_cast<Location*>(into);
  const std::size_t bytes = size * count;
  if (location.got + bytes > location.most) return 0;
  std::memcpy(location.room.get() + location.got, data, bytes);
  location.got += bytes;
  return bytes;
}

void begin(CURLM* multi, Location& location, const RemoteRead& read, long buffer_bytes) {
  CURL* const handle = location.handle;
  const char* const keys = std::getenv("CURL_AWS");
  curl_easy_reset(handle);
  location.got = 0;
  const std::string range = std::to_string(read.first) + "-" + std::to_string(read.last);
  curl_easy_setopt(handle, CURLOPT_URL, read.url.c_str());
  if (read.is_range) curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  if (keys != nullptr) {
    curl_easy_setopt(handle, CURLOPT_USERPWD, keys);
    curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, "aws:amz:us-east-1:s3");
  }
  if (const char* const file = std::getenv("SSL_CERT_FILE")) curl_easy_setopt(handle, CURLOPT_CAINFO, file);
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, buffer_bytes);
  curl_easy_setopt(handle, CURLOPT_PRIVATE, &location);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &take);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &location);
  curl_multi_add_handle(multi, handle);
}

}  // namespace

int main(int count, char** arguments) {
  const std::size_t at_once = count > 1 ? std::stoul(arguments[1]) : 8;
  const long buffer_bytes = count > 2 ? std::stol(arguments[2]) : kBufferBytes;
  const auto reads = feedline::bench::remote_reads(std::cin);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  CURLM* const multi = curl_multi_init();
  std::vector<Location> locations(std::min(at_once, reads.size()));
  for (Location& location : locations) {
    location.handle = curl_easy_init();
    location.room = std::make_unique_for_overwrite<char[]>(kRoom);
    location.most = kRoom;
  }
  std::size_t next = 0, under_way = 0;
  std::uint64_t bytes = 0;
  const feedline::bench::Stopwatch stopwatch;
  for (; next < locations.size(); ++next, ++under_way) begin(multi, locations[next], reads[next], buffer_bytes);
  while (under_way > 0) {
    int running = 0, left = 0;
    curl_multi_perform(multi, &running);
    while (const CURLMsg* const message = curl_multi_info_read(multi, &left)) {
      Location* location = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &location);
      if (message->data.result != CURLE_OK) {
        std::fprintf(stderr, "curl_reads: %s\n", curl_easy_strerror(message->data.result));
        return 1;
      }
      curl_multi_remove_handle(multi, location->handle);
      bytes += location->got;
      --under_way;
      if (next == reads.size()) continue;
      begin(multi, *location, reads[next++], buffer_bytes);
      ++under_way;
      running = 1;
    }
    if (under_way > 0) curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
  }
  stopwatch.print(bytes, reads.size());
  for (const Location& location : locations) curl_easy_cleanup(location.handle);
  curl_multi_cleanup(multi);
  return 0;
}
