import HTTPServer
import StoreCoordination

extension InspectorParts {
  /// The models to choose from; the one that fits the store best is proposed.
  func modelOptions(for files: StoreFileSet) -> [(value: String, label: String)] {
    let best = fittingModel(of: files)?.name
    return models.sorted { first, second in first.name == best && second.name != best }.map {
      (value: $0.name, label: "\($0.name) (\(printable($0.model.currentVersionName)))")
    }
      + [(value: "", label: "What the store says of itself")]
  }

  /// What a store is by the model that fits it best, every page looked at.
  ///
  /// It is only looked at.
  func examined(
    _ files: StoreFileSet, countsRecords: Bool = false
  ) -> (model: InspectorModel?, examination: PagePart<Examination>) {
    let fitting = fittingModel(of: files)
    // By no model at all a store is judged by itself, which is all that several models leave to say.
    let model = fitting ?? (models.count == 1 ? models.first : nil)
    let part = PagePart {
      try examinations.examination(
        of: files, model: model, countsRecords: countsRecords, in: surroundings.fileSystem)
    }
    return (fitting ?? models.first, part)
  }

  /// The model that fits a store best; nil where none does.
  func fittingModel(of files: StoreFileSet) -> InspectorModel? {
    let examiner = Examiner(fileSystem: surroundings.fileSystem)
    var best: (model: InspectorModel, fit: Int)?
    for model in models {
      let part = PagePart { try examiner.examine(files.main, model: model.model, options: .init(countsRecords: false)) }
      let fit = part.value?.fit ?? 0
      if fit > best?.fit ?? 0 { best = (model, fit) }
    }
    return best?.model
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
