#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// libpq, PostgreSQL's client library, loaded at first use.
///
/// If linked, every command would load TLS, Kerberos and LDAP, and every machine need PostgreSQL. ABI version 5 has
/// been stable since 2005; the prototypes are those of PostgreSQL 10's `libpq-fe.h` and later. The build needs no
/// header.
@safe struct PostgresLibrary: Sendable {
  typealias Text = UnsafePointer<CChar>
  typealias Texts = UnsafePointer<UnsafePointer<CChar>?>

  let connect: @convention(c) @Sendable (Texts?, Texts?, CInt) -> OpaquePointer?
  let status: @convention(c) @Sendable (OpaquePointer?) -> CInt
  let finish: @convention(c) @Sendable (OpaquePointer?) -> Void
  let errorMessage: @convention(c) @Sendable (OpaquePointer?) -> Text?
  let transactionStatus: @convention(c) @Sendable (OpaquePointer?) -> CInt
  let serverVersion: @convention(c) @Sendable (OpaquePointer?) -> CInt
  let socket: @convention(c) @Sendable (OpaquePointer?) -> CInt
  let consumeInput: @convention(c) @Sendable (OpaquePointer?) -> CInt
  let notifies: @convention(c) @Sendable (OpaquePointer?) -> UnsafeMutableRawPointer?
  let freeMemory: @convention(c) @Sendable (UnsafeMutableRawPointer?) -> Void
  let setNoticeReceiver:
    @convention(c) @Sendable (
      OpaquePointer?, (@convention(c) (UnsafeMutableRawPointer?, OpaquePointer?) -> Void)?, UnsafeMutableRawPointer?
    ) -> OpaquePointer?
  let execute: @convention(c) @Sendable (OpaquePointer?, Text?) -> OpaquePointer?
  let executeParameters:
    @convention(c) @Sendable (
      OpaquePointer?, Text?, CInt, UnsafePointer<UInt32>?, Texts?, UnsafePointer<CInt>?, UnsafePointer<CInt>?, CInt
    ) -> OpaquePointer?
  let prepare: @convention(c) @Sendable (OpaquePointer?, Text?, Text?, CInt, UnsafePointer<UInt32>?) -> OpaquePointer?
  let executePrepared:
    @convention(c) @Sendable (
      OpaquePointer?, Text?, CInt, Texts?, UnsafePointer<CInt>?, UnsafePointer<CInt>?, CInt
    ) -> OpaquePointer?
  let resultStatus: @convention(c) @Sendable (OpaquePointer?) -> CInt
  let resultErrorField: @convention(c) @Sendable (OpaquePointer?, CInt) -> Text?
  let rowCount: @convention(c) @Sendable (OpaquePointer?) -> CInt
  let columnCount: @convention(c) @Sendable (OpaquePointer?) -> CInt
  let value: @convention(c) @Sendable (OpaquePointer?, CInt, CInt) -> UnsafePointer<UInt8>?
  let length: @convention(c) @Sendable (OpaquePointer?, CInt, CInt) -> CInt
  let isNull: @convention(c) @Sendable (OpaquePointer?, CInt, CInt) -> CInt
  let changedRows: @convention(c) @Sendable (OpaquePointer?) -> Text?
  let clear: @convention(c) @Sendable (OpaquePointer?) -> Void
  let parseAddress:
    @convention(c) @Sendable (Text?, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> UnsafeMutableRawPointer?
  let freeAddress: @convention(c) @Sendable (UnsafeMutableRawPointer?) -> Void

  /// First the loader's name, then Homebrew's paths.
  private static let names = [
    "libpq.so.5", "libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib",
    "/usr/local/opt/libpq/lib/libpq.5.dylib",
  ]

  private static let loaded: PostgresLibrary? = load()

  /// Returns this machine's library.
  ///
  /// - Throws: `inbox-records`, environmental, if not installed.
  static func shared() throws(InboxError) -> PostgresLibrary {
    guard let loaded else {
      throw InboxError(
        .records, operation: "open the database of the inbox",
        detail: "libpq, the client library of PostgreSQL, is not on this machine",
        hint: "Install it: apt install libpq5, dnf install libpq, or brew install libpq.", isEnvironmental: true)
    }
    return loaded
  }

  private static func load() -> PostgresLibrary? {
    for name in names {
      // Loaded for the life of the process.
      guard let handle = unsafe dlopen(name, RTLD_NOW | RTLD_LOCAL) else { continue }
      // Skip a library that lacks a function.
      if let library = try? unsafe PostgresLibrary(handle) { return library }
    }
    return nil
  }

  private struct Missing: Error {}

  private init(_ handle: UnsafeMutableRawPointer) throws(Missing) {
    /// The caller's type has a C function pointer's size.
    func function<Function>(_ name: String) throws(Missing) -> Function {
      guard let address = unsafe dlsym(handle, name) else { throw Missing() }
      return unsafe unsafeBitCast(address, to: Function.self)
    }
    unsafe connect = try unsafe function("PQconnectdbParams")
    unsafe status = try unsafe function("PQstatus")
    unsafe finish = try unsafe function("PQfinish")
    unsafe errorMessage = try unsafe function("PQerrorMessage")
    unsafe transactionStatus = try unsafe function("PQtransactionStatus")
    unsafe serverVersion = try unsafe function("PQserverVersion")
    unsafe socket = try unsafe function("PQsocket")
    unsafe consumeInput = try unsafe function("PQconsumeInput")
    unsafe notifies = try unsafe function("PQnotifies")
    unsafe freeMemory = try unsafe function("PQfreemem")
    unsafe setNoticeReceiver = try unsafe function("PQsetNoticeReceiver")
    unsafe execute = try unsafe function("PQexec")
    unsafe executeParameters = try unsafe function("PQexecParams")
    unsafe prepare = try unsafe function("PQprepare")
    unsafe executePrepared = try unsafe function("PQexecPrepared")
    unsafe resultStatus = try unsafe function("PQresultStatus")
    unsafe resultErrorField = try unsafe function("PQresultErrorField")
    unsafe rowCount = try unsafe function("PQntuples")
    unsafe columnCount = try unsafe function("PQnfields")
    unsafe value = try unsafe function("PQgetvalue")
    unsafe length = try unsafe function("PQgetlength")
    unsafe isNull = try unsafe function("PQgetisnull")
    unsafe changedRows = try unsafe function("PQcmdTuples")
    unsafe clear = try unsafe function("PQclear")
    unsafe parseAddress = try unsafe function("PQconninfoParse")
    unsafe freeAddress = try unsafe function("PQconninfoFree")
  }

  /// The parameters of an address; nil if malformed.
  func names(in address: String) -> [String]? {
    var message: UnsafeMutablePointer<CChar>?
    guard let options = unsafe parseAddress(address, &message) else {
      unsafe freeMemory(message)
      return nil
    }
    defer { unsafe freeAddress(options) }
    // PQconninfoOption: char *keyword, *envvar, *compiled, *val, *label, *dispchar; int dispsize. The last keyword is
    // null.
    let pointer = MemoryLayout<Int>.stride
    var names: [String] = []
    for index in 0..<200 {
      let option = unsafe options + index * 7 * pointer
      guard let keyword = unsafe option.load(as: UnsafePointer<CChar>?.self) else { break }
      let value = unsafe option.load(fromByteOffset: 3 * pointer, as: UnsafePointer<CChar>?.self)
      if unsafe value != nil { names.append(unsafe String(cString: keyword)) }
    }
    return names
  }
}
