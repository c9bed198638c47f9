internal import Foundation
import Platform

/// Where a database is: `postgresql://…`; it is never shown.
package struct PostgresAddress: Sendable {
  /// Where an address was said.
  package enum Origin: Sendable {
    /// On the command line, where other users of the machine can read it: it may hold no password.
    case commandLine

    /// In the environment, which is this user's alone.
    case environment
  }

  let text: String
  private let origin: Origin

  private static let operation = "open the database of the inbox"

  /// An address as it was said.
  ///
  /// - Throws: `inbox-address`, where it is none, or holds a password and may not. It opens nothing.
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

  /// Has libpq read it, which is who decides what it says.
  ///
  /// - Throws: `inbox-address`; never with libpq's words, which may quote the address.
  func check(by library: PostgresLibrary) throws(InboxError) {
    guard let names = library.names(in: text) else {
      throw InboxError(
        .address, operation: Self.operation, detail: "that is no address of a PostgreSQL database",
        hint: "Give postgresql://HOST/DATABASE; other characters than letters and digits in names are written %XX.")
    }
    if origin == .commandLine, names.contains("password") || names.contains("sslpassword") { throw Self.password }
  }

  /// Whether what stands before the host ends where it seems to: libpq takes the rest of a password with `@` or `/` in it for a
  /// host, and names it in its messages.
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

  /// Whether it has a password before its host or among its parameters.
  private static func hasPassword(_ text: String) -> Bool {
    guard let start = text.range(of: "://") else { return false }
    let rest = text[start.upperBound...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    if let end = rest.firstIndex(of: "@"), rest[..<end].contains(":"), end < authority.endIndex { return true }
    // One with a slash in it, which it should not have: libpq takes the text before it for a host.
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
