/// A failure without values and server messages.
struct PostgresFailure: Error, Equatable {
  enum Kind: Equatable {
    /// No connection; libpq's message names host and user, but no secret.
    case connecting(String)

    /// The connection was lost; the last statement's outcome is unknown.
    case lost

    /// The server refused a statement, with this SQLSTATE.
    case state(String)

    /// All connections stayed in use.
    case busy

    /// A text has a NUL, which PostgreSQL cannot store, or is not UTF-8.
    case badText

    /// A row not written by this software.
    case badRow
  }

  let kind: Kind

  init(_ kind: Kind) { self.kind = kind }

  var isConnectionLost: Bool {
    switch kind {
    case .connecting, .lost: true
    // The server stops, starts or is read-only, like a former primary; another connection may reach the new one.
    case .state(let state):
      state.hasPrefix("08") || ["57P01", "57P02", "57P03", "57P05", "25P03", "25006"].contains(state)
    case .busy, .badText, .badRow: false
    }
  }

  /// Whether the transaction lost a conflict and can be retried.
  var isConflict: Bool { kind == .state("40001") || kind == .state("40P01") }

  /// Whether the environment is at fault: server, network, permissions, space or locks.
  ///
  /// Classes of [PostgreSQL's error codes](https://www.postgresql.org/docs/15/errcodes-appendix.html).
  var isEnvironmental: Bool {
    switch kind {
    case .connecting, .lost, .busy: true
    case .badText, .badRow: false
    case .state(let state):
      // Connections, authorization, conflicts, resources, operator and system; missing catalogue; permissions; lock;
      // read-only.
      ["08", "28", "3D", "40", "53", "57", "58"].contains(state.prefix(2))
        || ["42501", "55P03", "55006", "25006"].contains(state)
    }
  }

  func told(_ operation: String) -> InboxError {
    let (detail, hint): (String, String) =
      switch kind {
      case .connecting(let words):
        (
          "cannot connect to its database: \(words)",
          "Look whether the server runs there, and whether this user may use it."
        )
      case .lost:
        (
          "the connection to its database was lost", "Look whether the server runs; then do it again."
        )
      case .busy: ("all connections to its database are in use", "Wait a moment; then do it again.")
      case .badText: ("a text cannot be kept in PostgreSQL", "Leave control characters out.")
      case .badRow: ("a row of its database is not as this software writes it", "Restore the database from its backup.")
      case .state(let state): ("its database refused the statement (SQLSTATE \(state))", Self.hint(state))
      }
    return InboxError(
      .records, operation: operation, detail: detail, hint: hint, isEnvironmental: isEnvironmental)
  }

  private static func hint(_ state: String) -> String {
    switch state {
    case "42501": "Give this user the rights: it owns the schema lazaret, or the schema's owner grants them."
    case "3D000": "Create the database first: createdb."
    case "25006": "Give the address of the primary server; this one only reads."
    case "53100": "The disk of the database server is full: make room there."
    case "53300": "The server has no connection left: raise max_connections, or end some."
    case "55P03", "57014": "It took too long: look what else the server does."
    case _ where state.hasPrefix("XX"): "Look into the server's log: it reports damage of its own."
    case _ where PostgresFailure(.state(state)).isEnvironmental: "Look into the server's log, then do it again."
    default: "Please report this, with the server's log."
    }
  }
}
