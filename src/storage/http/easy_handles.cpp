// SPDX-License-Identifier: Apache-2.0
#include "storage/http/easy_handles.h"

#include <fcntl.h>

#include <cstdlib>
#include <utility>

#include "storage/http/curl_buffers.h"

namespace feedline::storage {
namespace {

constexpr long kMostRedirects = 5;
constexpr long kBufferBytes = kCurlBufferBytes;  // each is written to memory once; curl's default of 16 KB would need
                                                 // more calls
constexpr std::size_t kMostIdle = 64;
constexpr auto kProtocols = static_cast<CURLoption>(CURLOPTTYPE_LONG + 181);  // a bit mask; later versions also accept
                                                                              // text

// Marks the socket so that programs started by this process do not inherit it.
int keep_to_this_program(void* /*data*/, curl_socket_t socket, curlsocktype /*purpose*/) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  return 0;
}

// Certificate locations set in the environment, which are used in addition to the system's; nullptr if not set.
struct Certificates {
  const char* file = nullptr;
  const char* folder = nullptr;
  std::string text() const { return std::string(file ? file : "") + '\n' + (folder ? folder : ""); }
};

Certificates certificates() {
  const char* const bundle = std::getenv("CURL_CA_BUNDLE");
  return {bundle ? bundle : std::getenv("SSL_CERT_FILE"), std::getenv("SSL_CERT_DIR")};
}

}  // namespace

EasyHandles::EasyHandles(const CurlLibrary& curl, Receive on_header, Receive on_body)
    : curl_(curl), on_header_(on_header), on_body_(on_body) {}

EasyHandles::~EasyHandles() { clear(); }

void EasyHandles::clear() {
  for (CURL* handle : std::exchange(idle_, {})) curl_.easy_cleanup(handle);
}

CURL* EasyHandles::take() {
  const Certificates from = certificates();
  if (std::string now = from.text(); now != certificates_) {
    clear();
    certificates_ = std::move(now);
  }
  if (!idle_.empty()) {
    CURL* const handle = idle_.back();
    idle_.pop_back();
    return handle;
  }
  CURL* const handle = curl_.easy_init();
  if (handle != nullptr) set_lasting(handle);
  return handle;
}

void EasyHandles::give_back(CURL* handle, bool has_usual_options) {
  if (has_usual_options && idle_.size() < kMostIdle)
    idle_.push_back(handle);
  else
    curl_.easy_cleanup(handle);
}

// curl copies strings.
void EasyHandles::set_lasting(CURL* handle) const {
  const auto set = [&](CURLoption option, auto value) { curl_.easy_setopt(handle, option, value); };
  set(CURLOPT_MAXREDIRS, kMostRedirects);
  set(kProtocols, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_USERAGENT, "feedline");
  set(CURLOPT_SOCKOPTFUNCTION, keep_to_this_program);
  const Certificates from = certificates();
  if (from.file != nullptr) set(CURLOPT_CAINFO, from.file);
  if (from.folder != nullptr) set(CURLOPT_CAPATH, from.folder);
  set(CURLOPT_HEADERFUNCTION, on_header_);
  set(CURLOPT_WRITEFUNCTION, on_body_);
}

}  // namespace feedline::storage
