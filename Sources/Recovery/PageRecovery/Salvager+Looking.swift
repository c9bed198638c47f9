package import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles
package import SystemPackage

extension Salvager {
  /// The rows of a store as they are found, for looking at them, with the model that tells what they mean.
  package struct Findings: Sendable {
    /// The account of the rows.
    package var report: SalvageReport

    /// The model of the version that the store is of, as far as that can be told.
    package var model: ManagedObjectModel?
  }

  /// Writes the rows of a store as they are found into a file that is the caller's alone.
  ///
  /// As `salvageRaw`, but nothing is pushed to the disk, since it can be made again at any time.
  ///
  /// - Throws: ``SalvageError``; nothing is left then.
  package func look(
    at path: FilePath, into output: FilePath, model: SalvageModel? = nil, options: Options = Options()
  ) throws(SalvageError) -> Findings {
    let evidence = try Evidence(path, in: fileSystem)
    do throws(SalvageError) {
      let run = SalvageRun(evidence: evidence, model: model, options: options)
      let found = try run.raw(to: output)
      return Findings(report: found.report, model: found.foreignModel ?? found.layout?.model)
    } catch {
      // The first error is the one to report.
      try? fileSystem.unlink(output)
      throw error
    }
  }
}
