public import PageRecovery
public import StoreFiles
public import SystemPackage

extension Salvager {
  /// Makes a clean store of the rows of a damaged one, of the version it was written with, and migrates it to the current
  /// version of the model.
  ///
  /// References to records that are gone are cut, contradicting and unfit rows are set aside into a file beside the result
  /// (its name with `-set-aside`), and the report counts each. Where nothing tells the version, the one of the bundle that
  /// fits best is taken; without any model the tables are made as the store's schema lists them. The result has passed
  /// every check before it gets its name. Where the migration fails for a reason in the records, the store stays of its own
  /// version and the report says so.
  ///
  /// - Parameters:
  ///   - path: the store's main file.
  ///   - output: the new store; nothing may have its name, nor that of the file beside it.
  ///   - model: what is known of the store.
  /// - Throws: ``SalvageError``; nothing is left then.
  public func salvage(
    _ path: FilePath, to output: FilePath, model: SalvageModel? = nil, options: Options = Options()
  ) throws(SalvageError) -> SalvageReport {
    try salvage(path, to: output, model: model, options: options, migration: SalvageMigration())
  }

  /// The same, with the app's own way to its current version.
  package func salvage(
    _ path: FilePath, to output: FilePath, model: SalvageModel?, options: Options, migration: SalvageMigration
  ) throws(SalvageError) -> SalvageReport {
    var report = try StoreReconstruction(
      evidence: try Evidence(path, in: fileSystem), model: model, options: options, migration: migration,
      surroundings: surroundings, output: output
    ).run()
    report.store = PathText(path)
    report.output = PathText(output)
    return report
  }

  /// Takes back what a killed salvage left at the place of its result.
  ///
  /// - Throws: `locked` where another process salvages to that place, or what the file system says.
  package static func clearInterrupted(_ output: FilePath, in fileSystem: FileSystem) throws(FileError) {
    try StoreReconstruction.clearInterrupted(output, in: fileSystem)
  }
}
