import HTTPServer
import StoreCoordination

/// The entities and attributes of a store, to choose which values stay in a scrubbed one and which are overwritten.
struct ExportTree: Sendable, Encodable {
  /// An entity with the attributes that it declares itself.
  struct Branch: Sendable, Encodable {
    var entity: String
    var attributes: [Leaf]
  }

  struct Leaf: Sendable, Encodable {
    var name: String

    /// The word for its type.
    var type: String

    /// What a form calls it: `Entity.attribute`.
    var path: String
  }

  let branches: [Branch]

  /// The most attributes that are listed; of more the fields of text take their names.
  private static let maximumLeaves = 4_000

  /// The tree of a model; what the store does not hold is left out of it.
  init(_ model: ManagedObjectModel) {
    var count = 0
    branches = model.entities.values.sorted { $0.name < $1.name }.compactMap { entity in
      let leaves = entity.properties.values.sorted { $0.name < $1.name }.compactMap { property -> Leaf? in
        guard let attribute = property.attribute, !attribute.traits.isTransient else { return nil }
        return Leaf(
          name: property.name, type: attribute.type.sourceName, path: "\(entity.name).\(property.name)")
      }
      count += leaves.count
      return leaves.isEmpty || count > Self.maximumLeaves ? nil : Branch(entity: entity.name, attributes: leaves)
    }
  }

  /// What the fields of a form name: each an attribute of the tree as it is called, spaces included, or text with several.
  func paths(in fields: [String]) -> Set<String> {
    let known = Set(branches.flatMap { $0.attributes.map(\.path) })
    return Set(fields.flatMap { known.contains($0) ? [$0] : ExportActions.words([$0]) })
  }

  /// The tree as fields of a form.
  ///
  /// - Parameters:
  ///   - keeping: the attributes that are ticked to stay.
  ///   - dropping: those that are ticked to be overwritten.
  func html(keeping: Set<String>, dropping: Set<String>) -> HTML {
    guard !branches.isEmpty else { return .empty }
    let items = branches.map { branch -> HTML in
      let chosen = branch.attributes.count { keeping.contains($0.path) || dropping.contains($0.path) }
      let note = chosen == 0 ? "" : ", \(chosen) chosen"
      let rows = branch.attributes.map { leaf -> HTML in
        """
        <tr data-name="\(leaf.path.lowercased())"><th scope="row">\(printable(leaf.name)) <small class="soft">\(leaf.type)</small></th>\
        <td>\(Self.box("keep", leaf, keeping, "stays as it is"))</td>\
        <td>\(Self.box("drop", leaf, dropping, "is overwritten"))</td></tr>
        """
      }
      let open: HTML = chosen > 0 ? " open" : ""
      return """
        <details data-branch\(open)><summary>\(printable(branch.entity)) <span class="soft">\
        \(Words.counted(branch.attributes.count, "attribute"))\(note)</span></summary><table><thead><tr>\
        <th scope="col">Attribute</th><th scope="col">Stays</th><th scope="col">Overwritten</th></tr></thead>\
        <tbody>\(rows)</tbody></table></details>
        """
    }
    return """
      <fieldset class="tree" data-tree><legend>Values in a scrubbed store</legend>\
      <p class="soft">Without a tick, text is replaced, dates are shifted, and numbers that could be a person's are changed. \
      <b>Stays</b> leaves the values of an attribute as they are, <b>Overwritten</b> leaves nothing of them.</p>\
      <p data-tree-search hidden><label><span>Find an entity or an attribute</span><input type="search" autocomplete="off"></label></p>\
      \(items)</fieldset>
      """
  }

  private static func box(_ name: HTML, _ leaf: Leaf, _ chosen: Set<String>, _ words: String) -> HTML {
    let ticked: HTML = chosen.contains(leaf.path) ? " checked" : ""
    return """
      <input type="checkbox" name="\(name)" value="\(leaf.path)" aria-label="\(printable(leaf.path)) \(words)"\(ticked)>
      """
  }
}

extension InspectorParts {
  /// The model of a store by which its attributes are named: its own, else the current version of the one that fits it.
  func attributes(of files: StoreFileSet) -> ManagedObjectModel? {
    let examined = examined(files)
    if let own = examined.examination.value?.storeModel { return own }
    guard case .coreData(let bundle)? = examined.model?.model else { return nil }
    return bundle.current.model
  }
}
