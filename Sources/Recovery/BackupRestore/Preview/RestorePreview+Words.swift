import Backup
internal import StoreFiles

extension RestorePreview {
  /// The most columns of a table that are named.
  private static let maximumColumns = 8

  /// What restoring would change about the schema, each in a sentence without a full stop: the model version, tables, columns.
  package var schemaWords: [String] {
    var lines: [String] = []
    if let versions {
      let (one, other) = (Self.words(versions.backup), Self.words(versions.present))
      // Versions of one name are told apart by their checksums.
      let isSame = one == other
      let backup = isSame ? Self.words(versions.backup, byChecksum: true) : one
      let present = isSame ? Self.words(versions.present, byChecksum: true) : other
      lines.append("the backup is of \(backup), the present store of \(present)")
    }
    for change in schema {
      let table = printable(change.table)
      if change.isWholeTable {
        lines.append("restoring \(change.lost.isEmpty ? "adds" : "removes") the table \(table)")
        continue
      }
      if !change.lost.isEmpty { lines.append("restoring removes \(Self.words(change.lost)) of \(table)") }
      if !change.added.isEmpty { lines.append("restoring adds \(Self.words(change.added)) to \(table)") }
    }
    return lines
  }

  /// What restoring would change about large values in files of their own, each in a sentence without a full stop.
  package var valueWords: [String] {
    var lines: [String] = []
    if values.lost > 0 {
      lines.append(
        "restoring loses \(counted(values.lost, "large value")): the backup does not have \(values.lost == 1 ? "its file" : "their files")"
      )
    }
    if values.changed > 0 {
      lines.append("restoring changes \(counted(values.changed, "large value")) in files of their own")
    }
    if values.added > 0 { lines.append("restoring adds \(counted(values.added, "large value")) in files of their own") }
    return lines
  }

  private static func words(_ version: Version?, byChecksum: Bool = false) -> String {
    guard let version else { return "a model version that cannot be read" }
    if !byChecksum, let name = version.name ?? version.identifiers.first {
      return "model version \"\(printable(name))\""
    }
    return "the model version with the checksum \(version.checksum)"
  }

  private static func words(_ columns: [String]) -> String {
    let names = columns.prefix(maximumColumns).map { printable($0) }.joined(separator: ", ")
    let rest = columns.count - maximumColumns
    return "the \(columns.count == 1 ? "column" : "columns") \(names)" + (rest > 0 ? " and \(rest) more" : "")
  }
}
