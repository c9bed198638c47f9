internal import Foundation
import Platform

/// A `postgresql://…` address, which is never shown.
package struct PostgresAddress: Sendable {
  package enum Origin: Sendable {
    /// Readable by other users of the machine, so it may hold no password.
    case commandLine

    /// Readable by this user only.
    case environment
  }

  let text: String
  private let origin: Origin

  private static let operation = "open the database of the inbox"

  /// Checks an address without connecting.
  ///
  /// - Throws: `inbox-address` if malformed or with a forbidden password.
  package init(_ text: String, from origin: Origin) throws(InboxError) {
    guard ["postgresql://", "postgres://"].contains(where: text.hasPrefix), !text.utf8.contains(0) else {
      throw InboxError(
        .address, operation: Self.operation, detail: "that is no address of a PostgreSQL database",
        hint: "Give postgresql://HOST/DATABASE, or leave it away: then the records are in a file of the home.")
    }
    self.text = text
    self.origin = origin
    if origin == .commandLine, Self.hasPassword(text) { throw Self.password }
    guard Self.endsItsCredentials(text) else {
      throw InboxError(
        .address, operation: Self.operation, detail: "a name or a password in it has characters that end it too early",
        hint: "Write @ as %40, / as %2F and : as %3A in names and passwords, or give the password by PGPASSFILE.")
    }
  }

  /// Lets libpq parse it.
  ///
  /// - Throws: `inbox-address`, without libpq's message, which may quote the address.
  func check(by library: PostgresLibrary) throws(InboxError) {
    guard let names = library.names(in: text) else {
      throw InboxError(
        .address, operation: Self.operation, detail: "that is no address of a PostgreSQL database",
        hint: "Give postgresql://HOST/DATABASE; other characters than letters and digits in names are written %XX.")
    }
    if origin == .commandLine, names.contains("password") || names.contains("sslpassword") { throw Self.password }
  }

  /// Whether the credentials end where they seem to: libpq takes the rest of a password after `@` or `/` for a host,
  /// and names it in messages.
  private static func endsItsCredentials(_ text: String) -> Bool {
    guard let start = text.range(of: "://") else { return true }
    let rest = text[start.upperBound...].prefix { $0 != "?" }
    let authority = rest.prefix { $0 != "/" }
    let signs = rest.filter { $0 == "@" }.count
    return signs == 0 || signs == 1 && authority.contains("@")
  }

  private static var password: InboxError {
    InboxError(
      .address, operation: operation, detail: "it holds a password, which other users of this machine can see",
      hint: """
        Leave the password out, and give it by ~/.pgpass, PGPASSFILE, PGPASSWORD or a service file; or give the whole \
        address in LAZARET_DATABASE. Then change it: it was seen.
        """)
  }

  /// Whether a password is before the host or among the parameters.
  private static func hasPassword(_ text: String) -> Bool {
    guard let start = text.range(of: "://") else { return false }
    let rest = text[start.upperBound...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    if let end = rest.firstIndex(of: "@"), rest[..<end].contains(":"), end < authority.endIndex { return true }
    // A password with a slash: libpq takes the text before it for a host.
    let path = rest[authority.endIndex...].prefix { $0 != "?" }
    if authority.contains(":"), path.contains("@") { return true }
    guard let question = rest.firstIndex(of: "?") else { return false }
    return rest[rest.index(after: question)...].split(separator: "&").contains { parameter in
      let name = parameter.prefix { $0 != "=" }
      let plain = String(name).removingPercentEncoding ?? String(name)
      return ["password", "sslpassword"].contains(plain.lowercased())
    }
  }
}
