import Lazaret
internal import PersistentStore
internal import Platform
internal import Salvage
internal import SystemPackage

/// Everything that is found out about a store before anything is written.
struct ExportAnalysis {
  var examination: Examination

  /// What can be recovered of it; nil where no page of a database was found.
  var report: SalvageReport?

  /// Why there is no report, in words.
  var failure: String?

  /// The report came from an earlier salvage.
  var isReportKept = false

  /// The pages; nil where there are none.
  var pages: EvidencePages?

  /// Looks at the store.
  ///
  /// - Parameter usesReport: whether the report of an earlier salvage will do.
  /// - Throws: `cancelled`, or what the surroundings say; what is wrong with the store is told in the result.
  static func make(
    _ evidence: ExportEvidence, of source: ExportSource, _ options: ExportOptions, home: FilePath,
    in folder: ExportFolder, _ surroundings: Surroundings, usesReport: Bool = true, _ progress: @escaping ExportProgress
  ) throws -> ExportAnalysis {
    let fileSystem = surroundings.fileSystem
    let examination: Examination
    do {
      examination = try Examiner(fileSystem: fileSystem).examine(
        evidence.files.main, model: options.model,
        options: .init(depth: .full) { progress(.examining, Int64($0), Int64($1)) })
    } catch {
      guard progress(.examining, 0, 1) else { throw StoreExporter.cancelled() }
      throw error
    }
    var analysis = ExportAnalysis(examination: examination)
    guard evidence.hasMain else {
      analysis.failure = "the main file is missing"
      return analysis
    }
    if usesReport, case .quarantined(_, let path?) = source, try fileSystem.status(of: path) != nil {
      do throws(SalvageError) {
        analysis.report = try SalvageReport.read(path, in: fileSystem)
        analysis.isReportKept = true
      } catch {
        if error.isEnvironmental { throw error }
        // One that cannot be read is made again.
      }
    }
    let rows = folder.path.appending("rows.sqlite")
    if analysis.report == nil { try folder.requireRoom(evidence.bytes) }
    do throws(SalvageError) {
      if analysis.report == nil {
        analysis.report = try look(evidence, source, options, home, rows, surroundings, progress)
      }
      analysis.pages = try EvidencePages(evidence.files.main, in: fileSystem)
    } catch {
      switch error.kind {
      case .cancelled: throw StoreExporter.cancelled()
      case .nothingFound, .verificationFailed, .model, .unfitModel: analysis.failure = error.detail
      case .output, .file, .outputExists, .outputIsStore, .donor: throw error
      }
    }
    for part in [StoreFileSet.Part.main, .wal, .sharedMemory, .journal] {
      try fileSystem.unlink(StoreFileSet(main: rows).path(of: part))
    }
    return analysis
  }

  private static func look(
    _ evidence: ExportEvidence, _ source: ExportSource, _ options: ExportOptions, _ home: FilePath,
    _ rows: FilePath, _ surroundings: Surroundings, _ progress: @escaping ExportProgress
  ) throws(SalvageError) -> SalvageReport {
    let kits = [KitFolder(for: source.originalPath, home: home, in: surroundings.fileSystem)]
    let salvaging = Salvager.Options(
      kit: .folders(kits), scope: try source.evidence(surroundings)
    ) { _, done, total in progress(.analysing, done, total) }
    let salvager = Salvager(surroundings: surroundings)
    do throws(SalvageError) {
      return try salvager.look(
        at: evidence.files.main, into: rows, model: options.model.map(SalvageModel.init), options: salvaging
      ).report
    } catch  where error.kind == .unfitModel {
      // A model that has nothing of the store says nothing of its damage; the store itself does.
      return try salvager.look(at: evidence.files.main, into: rows, options: salvaging).report
    }
  }

  /// The report as it goes into a bundle.
  ///
  /// Where an app chooses its own keys these can be values of its user's, so that lost ones are only counted.
  func salvage(_ reduction: PathReduction) throws -> [UInt8] {
    guard let report else {
      let words = failure ?? "nothing could be read"
      return try JSON.bytes(of: ["found": "nothing", "words": words], .line, to: "export the report")
    }
    let keys: Set<String> = ["lostKeys", "lostKeysEstimated", "primaryKeys"]
    return try reduction.json(report, without: report.isCoreData ? [] : keys)
  }
}
