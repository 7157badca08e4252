// SPDX-License-Identifier: Apache-2.0
#include "storage/http/curl_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "storage/http/curl_buffers.h"

namespace feedline::storage {
namespace {

constexpr std::string_view kHowToGetIt =
    "; reading URLs takes libcurl 7.68 or newer: install it (Debian, Ubuntu: apt-get install libcurl4; Fedora, RHEL: "
    "dnf install libcurl; conda install libcurl), or name the file in FEEDLINE_LIBCURL";

template <typename Call>
bool find(void* library, const char* name, Call& call) {
  call = reinterpret_cast<Call>(::dlsym(library, name));
  return call != nullptr;
}

bool find_all(void* library, CurlLibrary& curl) {
  return find(library, "curl_global_init_mem", curl.global_init_mem) &&
         find(library, "curl_easy_init", curl.easy_init) && find(library, "curl_easy_setopt", curl.easy_setopt) &&
         find(library, "curl_easy_getinfo", curl.easy_getinfo) && find(library, "curl_easy_reset", curl.easy_reset) &&
         find(library, "curl_easy_strerror", curl.easy_strerror) &&
         find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
         find(library, "curl_multi_cleanup", curl.multi_cleanup) &&
         find(library, "curl_slist_append", curl.slist_append) &&
         find(library, "curl_slist_free_all", curl.slist_free_all) &&
         find(library, "curl_multi_init", curl.multi_init) && find(library, "curl_multi_setopt", curl.multi_setopt) &&
         find(library, "curl_multi_add_handle", curl.multi_add_handle) &&
         find(library, "curl_multi_remove_handle", curl.multi_remove_handle) &&
         find(library, "curl_multi_socket_action", curl.multi_socket_action) &&
         find(library, "curl_multi_assign", curl.multi_assign) &&
         find(library, "curl_multi_wakeup", curl.multi_wakeup) &&
         find(library, "curl_multi_info_read", curl.multi_info_read);
}

}  // namespace

Result<CurlLibrary> open_curl(const std::string& file) {
  const std::vector<std::string> files =
      file.empty() ? std::vector<std::string>{"libcurl.so.4", "libcurl-gnutls.so.4"} : std::vector{file};
  std::string found;
  for (const std::string& name : files) {
    void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    found = name;
    CurlLibrary curl;
    // if libcurl has already been initialised, it keeps those functions
    if (find_all(library, curl) &&
        curl.global_init_mem(CURL_GLOBAL_DEFAULT, allocate_for_curl, free_of_curl, reallocate_for_curl,
                             duplicate_for_curl, allocate_zeros_for_curl) == CURLE_OK)
      return curl;
  }
  const std::string why =
      found.empty() ? "there is no " + files.front() : found + " lacks some of the required functions";
  return storage_error(why + std::string(kHowToGetIt), 0);
}

const Result<CurlLibrary>& curl_library() {
  static const Result<CurlLibrary> library = [] {
    const char* const file = std::getenv("FEEDLINE_LIBCURL");
    return open_curl(file ? file : "");
  }();
  return library;
}

}  // namespace feedline::storage
