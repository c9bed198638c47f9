internal import BundleWriting
internal import Examination
internal import ManagedObjectModel
internal import PageRecovery
internal import PersistentStore
internal import Quarantine
internal import StoreFiles
internal import SupportBundle
internal import SystemPackage

/// The files that every bundle has, whatever its level.
struct ExportTexts {
  private let shared: [BundleItem]
  private let facts: [BundleLevel: BundleItem]
  private let readme: (BundleLevel, _ staying: String) -> BundleItem

  /// What each level says of the receipt of a quarantined store.
  private let receipts: [BundleLevel: [BundleItem]]

  init(
    _ work: ExportWork, _ evidence: ExportEvidence, _ analysis: ExportAnalysis, _ receipt: Receipt?,
    _ reduction: PathReduction, date: Timestamp, _ log: inout OpeningLog
  ) throws {
    let fileSystem = work.fileSystem
    var items: [BundleItem] = []
    func add(_ name: String, _ bytes: [UInt8], _ words: String) {
      items.append(BundleItem(name, .bytes(bytes), words: words))
    }
    add("salvage.json", try analysis.salvage(reduction), "what can be recovered, what not, and the likely causes")
    let examination = JSON.Object(analysis.examination, ["path": PathText(FilePath(work.source.name))])
    add(
      "examination.json", try reduction.json(examination, without: ["storeUUID"]),
      "what was found in the store's header, pages and metadata")
    if let states = analysis.report?.pages {
      let map = try PageMapFile(states, pages: analysis.pages) { !work.progress(.analysing, 1, 1) }
      add("page-map.json", map.text, "the state of every page")
    }
    if evidence.hasMain {
      add(
        "schema.sql", try SchemaListing(of: evidence.files, in: fileSystem).text,
        "the statements of the schema: tables, indexes, views, triggers")
    }
    items += ModelFiles.items(given: work.options.model, found: analysis.examination, &log)
    let system = SystemFacts(
      store: work.source.originalPath.folder, appVersion: work.options.appVersion, in: fileSystem)
    add("system.json", try JSON.bytes(of: system, to: "export the store"), "the system that it is on")
    let text = RowNumbers.removed(from: reduction.reduced(String(decoding: log.text, as: UTF8.self)))
    add("log.txt", Array(text.utf8), "the log of looking at the store and of opening a copy of it")
    shared = items

    var receipts: [BundleLevel: [BundleItem]] = [:]
    if let receipt {
      let shared = try Self.receipt(SharedReceipt(receipt), reduction)
      for level in BundleLevel.allCases {
        receipts[level] = level == .full ? try Self.receipt(whole: receipt.withoutOwnersWords, reduction) : shared
      }
    }
    self.receipts = receipts
    let (hasMain, stored, name) = (evidence.hasMain, "store/\(work.bundledName)", printable(work.source.name))
    let path = { (level: BundleLevel) in hasMain && (level == .scrubbed || level == .full) ? stored : nil }
    var facts: [BundleLevel: BundleItem] = [:]
    for level in BundleLevel.allCases {
      let path = path(level)
      let value = Self.facts(work, evidence, analysis, level, date: date, storePath: path)
      facts[level] = BundleItem(
        BundleFacts.name, .bytes(try JSON.bytes(of: value, to: "export the store")),
        words: "what was found, in numbers and words")
    }
    self.facts = facts
    readme = { level, staying in
      BundleItem(
        "README.txt", .bytes(BundleReadme.text(level, name: name, storePath: path(level), staying: staying)),
        words: "what the bundle is and how to look at it")
    }
  }

  /// The files for a level.
  ///
  /// - Parameter staying: what stays of a scrubbed store as it is.
  func items(_ level: BundleLevel, staying: String = "") -> [BundleItem] {
    shared + (receipts[level] ?? []) + [facts[level]].compactMap(\.self) + [readme(level, staying)]
  }

  private static func receipt(_ receipt: SharedReceipt, _ reduction: PathReduction) throws -> [BundleItem] {
    [
      BundleItem(
        "receipt.json", .bytes(try reduction.json(receipt)),
        words: "the receipt of the quarantine in numbers and codes, without the names and sums of files"),
      BundleItem(
        "timeline.json", .bytes(try reduction.json(receipt.timeline)), words: "what happened to the store, and when"),
    ]
  }

  private static func receipt(whole receipt: Receipt, _ reduction: PathReduction) throws -> [BundleItem] {
    [
      BundleItem(
        "receipt.json", .bytes(try reduction.json(receipt)),
        words: "the receipt of the quarantine, without the names of folders"),
      BundleItem(
        "timeline.json", .bytes(try reduction.json(receipt.history)), words: "what happened to the store, and when"),
    ]
  }

  private static func facts(
    _ work: ExportWork, _ evidence: ExportEvidence, _ analysis: ExportAnalysis, _ level: BundleLevel, date: Timestamp,
    storePath: String?
  ) -> BundleFacts {
    let (examination, pages) = (analysis.examination, analysis.report?.pages)
    let receipt = work.source.receipt
    let hashes = examination.metadata?.versionHashes ?? [:]
    var damaged = Set<String>()
    for run in pages?.runs ?? [] where run.state == .damaged || run.state == .unreadable {
      if let owner = run.owner, let pages { damaged.insert(pages.owners[owner].table) }
    }
    // Of a page that is gone only what it held tells whose it was.
    for entity in analysis.report?.entities ?? [] where entity.hasLosses { damaged.insert(entity.table) }
    let versions = SoftwareVersions(examination, app: work.options.appVersion ?? receipt?.versions.app)
    return BundleFacts(
      level: level, date: date, app: work.options.app, store: work.source.name,
      // Its name tells when it was quarantined, which is about as old as the newest date of the store.
      quarantineID: level == .scrubbed ? receipt?.lineage?.generation : work.source.quarantineID,
      verdict: examination.verdict.rawValue,
      reason: receipt?.reason.code ?? examination.reason.code, cause: analysis.report?.causes.first?.code.rawValue,
      pageStates: Dictionary(uniqueKeysWithValues: (pages?.counts ?? [:]).map { ($0.key.rawValue, Int64($0.value)) }),
      damagedTables: damaged.sorted(), pageSize: pages?.pageSize ?? examination.health.pageSize,
      bytes: evidence.allBytes, modelVersion: examination.modelVersion ?? receipt?.model?.version,
      modelChecksum: hashes.isEmpty ? receipt?.model?.checksum : ManagedObjectModel.versionChecksum(of: hashes),
      versions: versions, storePath: storePath)
  }
}

extension Receipt {
  /// The receipt without what a user wrote by hand as a reason, which can be anything.
  fileprivate var withoutOwnersWords: Receipt {
    guard reason.code == "by-request" else { return self }
    var receipt = self
    let written = reason.words
    receipt.reason.words = "It was asked for."
    receipt.timeline = history.map { moment in
      var moment = moment
      if moment.words == written { moment.words = receipt.reason.words }
      return moment
    }
    return receipt
  }
}
