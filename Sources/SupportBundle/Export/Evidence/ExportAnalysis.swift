import Lazaret
internal import PersistentStore
internal import Platform
internal import Salvage
internal import SystemPackage

/// The findings about a store.
struct ExportAnalysis {
  var examination: Examination

  var report: SalvageReport?

  var failure: String?

  var isReportKept = false

  var pages: EvidencePages?

  /// Analyses the store, including its faults.
  ///
  /// - Parameter usesReport: whether an earlier salvage's report may be used.
  /// - Throws: `cancelled`, or environmental errors.
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
      do {
        analysis.report = try SalvageReport.read(path, in: fileSystem)
        analysis.isReportKept = true
      } catch {
        let error = SalvageError(any: error)
        if error.isEnvironmental { throw error }
        // An unreadable report is made again.
      }
    }
    let rows = folder.path.appending("rows.sqlite")
    if analysis.report == nil { try folder.requireRoom(evidence.bytes) }
    do {
      if analysis.report == nil {
        analysis.report = try look(evidence, source, options, home, rows, surroundings, progress)
      }
      analysis.pages = try EvidencePages(evidence.files.main, in: fileSystem)
    } catch {
      let error = SalvageError(any: error)
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
      // An unrelated model reveals no damage.
      return try salvager.look(at: evidence.files.main, into: rows, options: salvaging).report
    }
  }

  /// Returns the report for a bundle, without an app's own keys, which can be user data.
  func salvage(_ reduction: PathReduction) throws -> [UInt8] {
    guard let report else {
      let words = failure ?? "nothing could be read"
      return try JSON.bytes(of: ["found": "nothing", "words": words], .line, to: "export the report")
    }
    let keys: Set<String> = ["lostKeys", "lostKeysEstimated", "primaryKeys"]
    return try reduction.json(report, without: report.isCoreData ? [] : keys)
  }
}
