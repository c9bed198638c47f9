internal import GRDB

/// A private database in memory.
enum MemoryDatabase {
  /// Opens one, without foreign keys so that tables and rows can come in any order.
  static func open() throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    // Schemas of older apps have text in double quotes.
    configuration.acceptsDoubleQuotedStringLiterals = true
    configuration.label = "Lazaret.MemoryDatabase"
    return try DatabaseQueue(configuration: configuration)
  }
}
