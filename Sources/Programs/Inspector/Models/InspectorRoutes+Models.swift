import HTTPServer
import StoreCoordination

extension InspectorRoutes {
  /// The models that were given, and the migration of each store to one of them.
  mutating func addModels(_ parts: InspectorParts) {
    page("/models", about: "The models that the inspector was given.") { _ in ModelsPage(models: parts.models) }
    let search = DocumentedRoute.Field(
      "q", "Only entities that have this text in their name, or in that of a property.")
    page(
      "/models/{model}", about: "The versions of a model, and the entities of the current one.", .identifier,
      query: [search]
    ) { request, name in
      guard let model = parts.models.first(where: { $0.name == name }) else {
        throw Refusal(.notFound, "no model of that name was given")
      }
      return ModelPage(model: model, filter: request.query["q"] ?? "")
    }
    page(
      "/models/{model}/version", about: "One version of a model: what it changes, and its entities.", .identifier,
      query: [.init("name", "The version; the current one if empty."), search]
    ) { request, name in
      guard let model = parts.models.first(where: { $0.name == name }) else {
        throw Refusal(.notFound, "no model of that name was given")
      }
      let version = request.query["name"] ?? model.model.currentVersionName
      return try ModelVersionPage(model: model, name: version, filter: request.query["q"] ?? "")
    }
    page(
      "/stores/{id}/plan", about: "The migration of a store to the current version of a model, step by step.", .store,
      query: [.init("model", "The name of the model; the first that was given if left out.")]
    ) { request, id in
      let store = try parts.catalogue.store(id)
      if store.isOnlyReceipt { try store.requireFiles() }
      let name = request.query["model"]
      let model = try name.map { name in
        guard let model = parts.models.first(where: { $0.name == name }) else {
          throw Refusal(.notFound, "no model of that name was given")
        }
        return model
      }
      return PlanPage(store, model, parts)
    }
  }
}
