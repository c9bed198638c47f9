internal import PageRecovery
internal import SQLiteFormat
internal import StoreFiles
internal import SystemPackage

/// The check of a rebuilt file's bytes: every page has one use, and every index as many entries as its table has rows.
enum RebuiltPages {
  /// Checks a file without a log.
  static func check(_ path: FilePath, in fileSystem: FileSystem) throws(SalvageError) {
    let report: IntegrityReport
    do {
      report = try Database(main: try fileSystem.open(path)).checkIntegrity(findingLimit: 10)
    } catch {
      throw SalvageError(database: error, path: path)
    }
    guard report.isSound else {
      let kinds = report.findings.damage.keys.map(\.rawValue).sorted().joined(separator: ", ")
      throw SalvageError(
        .verificationFailed, operation: "verify the rebuilt store", path: path,
        detail: "its pages are damaged (\(kinds))", hint: "Report it.")
    }
  }
}
