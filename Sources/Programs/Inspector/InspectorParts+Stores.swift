import HTTPServer
import RecordBrowsing
import StoreCoordination

extension InspectorParts {
  /// The models to choose from; the one that fits the store best is proposed, and none where several do not fit.
  ///
  /// - Parameter sums: the digests of the store's files, where they are known.
  func modelOptions(for files: StoreFileSet, sums: [String] = []) -> [(value: String, label: String)] {
    let best = (fittingModel(of: files) ?? foundModel(of: files, sums))?.name
    let options = models.sorted { first, second in first.name == best && second.name != best }.map {
      (value: $0.name, label: "\($0.name) (\(printable($0.model.currentVersionName)))")
    }
    let own = (value: "", label: "What the store says of itself")
    return best == nil && models.count > 1 ? [own] + options : options + [own]
  }

  /// The model that has the entities of which rows were found in a store; nil where it was not looked at, or none has any.
  ///
  /// Of a damaged store its header and its metadata may be gone, while what the rows are is still told by other pages.
  private func foundModel(of files: StoreFileSet, _ sums: [String]) -> InspectorModel? {
    guard let side = PagePart({ try sides.existing(.evidence(files, sha256: sums)) }).value ?? nil else { return nil }
    let names = Set(side.store.collections.filter(\.isEntity).map(\.name))
    var best: (model: InspectorModel, common: Int)?
    for model in models {
      guard case .coreData(let bundle) = model.model else { continue }
      let common = names.intersection(bundle.current.model.entities.keys).count
      if common > best?.common ?? 0 { best = (model, common) }
    }
    // A name that two apps happen to share is not enough.
    return best.flatMap { $0.common * 2 >= names.count ? $0.model : nil }
  }

  /// What a store is by the model that fits it best, every page looked at.
  ///
  /// It is only looked at.
  func examined(
    _ files: StoreFileSet, countsRecords: Bool = false
  ) -> (model: InspectorModel?, examination: PagePart<Examination>) {
    let fitting = fittingModel(of: files)
    let model = judging(fitting)
    let part = PagePart {
      try examinations.examination(
        of: files, model: model, countsRecords: countsRecords, in: surroundings.fileSystem)
    }
    return (fitting ?? models.first, part)
  }

  /// The model by which a store is judged: by no model at all it is judged by itself, which is all that several models leave
  /// to say.
  private func judging(_ fitting: InspectorModel?) -> InspectorModel? {
    fitting ?? (models.count == 1 ? models.first : nil)
  }

  /// What a store is by the model that fits it best, every page looked at; nil where that is not known in time, and is found out
  /// without the caller.
  func examined(_ files: StoreFileSet, by end: ContinuousClock.Instant) -> PagePart<Examination>? {
    let model = judging(fittingModel(of: files))
    let fileSystem = surroundings.fileSystem
    if let kept = PagePart({ try examinations.kept(files, model: model, in: fileSystem) }).value ?? nil {
      return PagePart { kept }
    }
    return looks.part(of: files.main, by: end) { [examinations] in
      try examinations.examination(of: files, model: model, countsRecords: false, in: fileSystem)
    }
  }

  /// The model that fits a store best; nil where none does.
  func fittingModel(of files: StoreFileSet) -> InspectorModel? {
    let ranked = Examiner(fileSystem: surroundings.fileSystem).ranked(models, for: files.main) { $0.model }
    return ranked.first { $0.fit > 0 }?.model
  }

  /// The model of a name; nil for none.
  ///
  /// - Throws: ``Refusal`` 400 for a name that no model has.
  func model(_ name: String?) throws(Refusal) -> AppModel? {
    guard let name, !name.isEmpty else { return nil }
    guard let model = models.first(where: { $0.name == name }) else {
      throw Refusal(.badRequest, "there is no model of that name")
    }
    return model.model
  }

  /// What is at a store's place now, in words; nil for nothing.
  func present(_ place: StoreFileSet) throws -> String? {
    let members = try place.members(in: surroundings.fileSystem)
    guard let first = members.first else { return nil }
    let bytes = members.reduce(Int64(0)) { $0 &+ $1.status.size }
    return "\(Words.size(bytes)), changed \(Words.date(first.status.modified))"
  }
}
