internal import Foundation
internal import GRDB

/// Bytes as a value that SQLite can be given.
struct BlobBytes: DatabaseValueConvertible {
  let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var databaseValue: DatabaseValue { Data(bytes).databaseValue }

  static func fromDatabaseValue(_ value: DatabaseValue) -> BlobBytes? {
    if case .blob(let data) = value.storage { BlobBytes([UInt8](data)) } else { nil }
  }
}
