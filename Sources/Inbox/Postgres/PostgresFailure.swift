/// What went wrong with a statement or a connection, without any value and without the words of the server.
struct PostgresFailure: Error, Equatable {
  enum Kind: Equatable {
    /// No connection came about; with what libpq says of it, which names the host and the user, and no secret.
    case connecting(String)

    /// The connection was lost; whether the latest statement was carried out is not known.
    case lost

    /// The server refused a statement, with this SQLSTATE.
    case state(String)

    /// All connections were in use for too long.
    case busy

    /// A text has a NUL, which PostgreSQL cannot keep, or one that came is no UTF-8.
    case badText

    /// A row is not as this software writes it.
    case badRow
  }

  let kind: Kind

  init(_ kind: Kind) { self.kind = kind }

  /// Whether the connection is of no more use.
  var isConnectionLost: Bool {
    switch kind {
    case .connecting, .lost: true
    // The server ends, or is just beginning or ending; or it only reads, as one that was the primary until a moment ago, and
    // another connection may lead to the one that is now.
    case .state(let state):
      state.hasPrefix("08") || ["57P01", "57P02", "57P03", "57P05", "25P03", "25006"].contains(state)
    case .busy, .badText, .badRow: false
    }
  }

  /// Whether the transaction was undone for the sake of another one, and can be carried out again.
  var isConflict: Bool { kind == .state("40001") || kind == .state("40P01") }

  /// Whether the environment is at fault: the server, the way to it, rights, space, locks; not what was asked.
  ///
  /// Classes of [PostgreSQL's error codes](https://www.postgresql.org/docs/15/errcodes-appendix.html).
  var isEnvironmental: Bool {
    switch kind {
    case .connecting, .lost, .busy: true
    case .badText, .badRow: false
    case .state(let state):
      // Connections, authorization, conflicts, resources, the operator, the system; a catalogue that is not there;
      // rights; a lock; a server that only reads.
      ["08", "28", "3D", "40", "53", "57", "58"].contains(state.prefix(2))
        || ["42501", "55P03", "55006", "25006"].contains(state)
    }
  }

  /// The failure as the inbox tells it.
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
