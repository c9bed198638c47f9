#pragma once

#include <curl/curl.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>

// The library is loaded when a request is made: with all that it needs, it takes 7 ms of a program's start.

#ifdef __APPLE__
#define LAZARET_CURL "libcurl.4.dylib"
#else
#define LAZARET_CURL "libcurl.so.4"
#endif

/// The library's functions, once it is prepared.
struct lazaret_curl {
  __typeof__(&curl_global_init) global_init;
  __typeof__(&curl_easy_init) easy_init;
  __typeof__(&curl_easy_cleanup) easy_cleanup;
  __typeof__(&curl_easy_reset) easy_reset;
  __typeof__(&curl_easy_perform) easy_perform;
  CURLcode (*easy_setopt)(CURL *handle, CURLoption option, ...);
  CURLcode (*easy_getinfo)(CURL *handle, CURLINFO info, ...);
  __typeof__(&curl_slist_append) slist_append;
  __typeof__(&curl_slist_free_all) slist_free_all;
};

static inline struct lazaret_curl *lazaret_curl(void) {
  static struct lazaret_curl functions;
  return &functions;
}

/// Loads and prepares the library, once before anything else is called; false where that is impossible.
static inline bool lazaret_curl_prepare(void) {
  void *library = dlopen(LAZARET_CURL, RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
#define LAZARET_LOAD(name) (*(void **)&lazaret_curl()->name = dlsym(library, "curl_" #name))
  return LAZARET_LOAD(global_init) && LAZARET_LOAD(easy_init) && LAZARET_LOAD(easy_cleanup) && LAZARET_LOAD(easy_reset) &&
         LAZARET_LOAD(easy_perform) && LAZARET_LOAD(easy_setopt) && LAZARET_LOAD(easy_getinfo) &&
         LAZARET_LOAD(slist_append) && LAZARET_LOAD(slist_free_all) &&
         lazaret_curl()->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
#undef LAZARET_LOAD
}

static inline CURL *lazaret_curl_init(void) { return lazaret_curl()->easy_init(); }

static inline void lazaret_curl_cleanup(CURL *handle) { lazaret_curl()->easy_cleanup(handle); }

static inline void lazaret_curl_reset(CURL *handle) { lazaret_curl()->easy_reset(handle); }

static inline CURLcode lazaret_curl_perform(CURL *handle) { return lazaret_curl()->easy_perform(handle); }

static inline struct curl_slist *lazaret_curl_append(struct curl_slist *list, const char *line) {
  return lazaret_curl()->slist_append(list, line);
}

static inline void lazaret_curl_free(struct curl_slist *list) { lazaret_curl()->slist_free_all(list); }

// Swift cannot call functions with any number of arguments; each of these sets options of one type.

/// Sets an option whose value is a number or a switch.
static inline CURLcode lazaret_curl_set_number(CURL *handle, CURLoption option, long value) {
  return lazaret_curl()->easy_setopt(handle, option, value);
}

/// Sets an option whose value is a size in bytes.
static inline CURLcode lazaret_curl_set_size(CURL *handle, CURLoption option, curl_off_t value) {
  return lazaret_curl()->easy_setopt(handle, option, value);
}

/// Sets an option whose value is a text, which the library copies.
static inline CURLcode lazaret_curl_set_text(CURL *handle, CURLoption option, const char *value) {
  return lazaret_curl()->easy_setopt(handle, option, value);
}

/// Sets the header fields of the request, which must last as long as the request.
static inline CURLcode lazaret_curl_set_fields(CURL *handle, struct curl_slist *fields) {
  return lazaret_curl()->easy_setopt(handle, CURLOPT_HTTPHEADER, fields);
}

/// What is called with bytes that come, or for bytes that go; it gives back how many it took or gave.
typedef size_t (*lazaret_curl_transfer)(char *bytes, size_t size, size_t count, void *context);

/// What is called to go back to a place in the body of the request; 0, or 1 where that cannot be.
typedef int (*lazaret_curl_rewind)(void *context, curl_off_t offset, int origin);

/// Sets what takes the body and the header lines of the answer.
static inline CURLcode lazaret_curl_set_receiving(
    CURL *handle, lazaret_curl_transfer body, lazaret_curl_transfer line, void *context) {
  CURLcode code = lazaret_curl()->easy_setopt(handle, CURLOPT_WRITEFUNCTION, body);
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_WRITEDATA, context);
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_HEADERFUNCTION, line);
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_HEADERDATA, context);
  return code;
}

/// Sets what gives the body of the request.
static inline CURLcode lazaret_curl_set_sending(
    CURL *handle, lazaret_curl_transfer body, lazaret_curl_rewind rewind, void *context) {
  CURLcode code = lazaret_curl()->easy_setopt(handle, CURLOPT_READFUNCTION, body);
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_READDATA, context);
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_SEEKFUNCTION, rewind);
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_SEEKDATA, context);
  return code;
}

/// What is called again and again while a request runs, with the bytes of bodies that came and went; 0 to go on.
typedef int (*lazaret_curl_progress)(
    void *context, curl_off_t download, curl_off_t downloaded, curl_off_t upload, curl_off_t uploaded);

/// Sets what is called while a request runs, at least once a second.
static inline CURLcode lazaret_curl_set_progress(CURL *handle, lazaret_curl_progress progress, void *context) {
  CURLcode code = lazaret_curl()->easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, progress);
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_XFERINFODATA, context);
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  return code;
}

/// Sets the place for the words of an error, of CURL_ERROR_SIZE bytes.
static inline CURLcode lazaret_curl_set_error_place(CURL *handle, char *place) {
  return lazaret_curl()->easy_setopt(handle, CURLOPT_ERRORBUFFER, place);
}

/// Forbids every protocol but the two that are meant, and every redirection.
static inline CURLcode lazaret_curl_restrict(CURL *handle) {
  CURLcode code = lazaret_curl()->easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  return code;
}

/// The status of the last answer; 0 where none came.
static inline long lazaret_curl_status(CURL *handle) {
  long status = 0;
  return lazaret_curl()->easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK ? status : 0;
}

/// How many connections the last request had to make; 0 where it used one that was open.
static inline long lazaret_curl_new_connections(CURL *handle) {
  long count = 0;
  return lazaret_curl()->easy_getinfo(handle, CURLINFO_NUM_CONNECTS, &count) == CURLE_OK ? count : 0;
}

static inline int lazaret_curl_note(void *place, curl_socket_t socket, curlsocktype purpose) {
  (void)purpose;
  *(curl_socket_t *)place = socket;
  return CURL_SOCKOPT_OK;
}

/// Notes the socket of a connection at a place where it is opened.
static inline CURLcode lazaret_curl_set_socket_place(CURL *handle, curl_socket_t *place) {
  CURLcode code = lazaret_curl()->easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, lazaret_curl_note);
  if (code == CURLE_OK) code = lazaret_curl()->easy_setopt(handle, CURLOPT_SOCKOPTDATA, place);
  return code;
}

/// Tells the server at once that what it sent has come.
///
/// A server that sends header and body of an answer apart waits for that, 40 ms where the system delays it in the hope of having something to
/// send along (TCP_QUICKACK in tcp(7)). Other systems than Linux have no such setting.
static inline void lazaret_curl_acknowledge(curl_socket_t socket) {
#ifdef TCP_QUICKACK
  int on = 1;
  // Where it cannot be set, the answer comes later.
  (void)setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
#else
  (void)socket;
#endif
}
