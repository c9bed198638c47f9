#include <stdarg.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <microhttpd.h>

// Swift cannot call functions with any number of arguments; these ask what they are wanted for.

/// The port that a daemon is bound to, or 0.
static inline uint16_t lazaret_mhd_port(struct MHD_Daemon *daemon) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
  return info ? info->port : 0;
}

/// The socket of a connection, or -1.
static inline int lazaret_mhd_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? (int)info->connect_fd : -1;
}

/// The number of bytes of a request's line and header fields as they came, with the empty line; 0 where it is not known.
static inline size_t lazaret_mhd_header_size(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info ? info->header_size : 0;
}

/// What tells clients apart: the address of IPv4, the first 64 bits of one of IPv6; 0 where it is not known.
static inline uint64_t lazaret_mhd_client(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (!info || !info->client_addr) return 0;
  if (info->client_addr->sa_family == AF_INET)
    return ((const struct sockaddr_in *)info->client_addr)->sin_addr.s_addr;
  if (info->client_addr->sa_family != AF_INET6) return 0;
  const uint8_t *bytes = ((const struct sockaddr_in6 *)info->client_addr)->sin6_addr.s6_addr;
  uint64_t client = 0;
  for (int index = 0; index < 8; index++) client = client << 8 | bytes[index];
  // Of ::1 and of mapped addresses only the other half tells.
  for (int index = 8; client == 0 && index < 16; index++) client = client << 8 | bytes[index];
  return client;
}

/// Writes the numeric address of a client, with a zero at its end; nothing but that where it is not known.
static inline void lazaret_mhd_address(struct MHD_Connection *connection, char *text, unsigned int length) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  text[0] = 0;
  if (!info || !info->client_addr) return;
  const struct sockaddr *address = info->client_addr;
  if (address->sa_family == AF_INET) inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, length);
  if (address->sa_family == AF_INET6) inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, text, length);
}

/// Who is told that the library is about to refuse a request by itself.
struct lazaret_mhd_log_target {
  void *own;
  void (*refused)(void *own, unsigned int status);
};

/// Takes what the library logs, and tells of its refusals; Swift has no type for the list of arguments.
static inline void lazaret_mhd_log(void *target, const char *format, va_list arguments) {
  const char *known = "Error processing request (HTTP response code is ";
  for (; *known; known++, format++)
    if (*format != *known) return;
  const struct lazaret_mhd_log_target *told = (const struct lazaret_mhd_log_target *)target;
  told->refused(told->own, va_arg(arguments, unsigned int));
}

/// The address of that function.
static inline intptr_t lazaret_mhd_logger(void) { return (intptr_t)&lazaret_mhd_log; }

/// Sets after how many seconds without a byte a connection is closed.
static inline void lazaret_mhd_set_timeout(struct MHD_Connection *connection, unsigned int seconds) {
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}
